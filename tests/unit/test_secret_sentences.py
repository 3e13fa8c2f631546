"""What looks like a secret in sentences that were written before the patterns: several values in one, a value that
became another, passwords of plain words; and what is said of passwords and codes without saying them."""

from __future__ import annotations

import re

from sleep.rules.secrets import find_secrets

# Values stand in brackets. Five are missed: by a sentence that names nothing, an order, a sign at the end.
SECRETS = """
My PIN changed from [1234] to [9876]
PIN was [1234], now it's [5678]
The old password was [tulip99], the new one is [Rose-garden7]
Login for the router: admin / password [hunter22]
My password is [correct horse battery staple]
the wifi password is [blue whale sings loudly]
Password for Netflix is [my dog eats socks] and it must not leave the house
My email password used to be [Winter2019] but now it is [Summer2026]
Phone PIN [4471], card PIN [9902]
the alarm code is [5520] and the garage code is [7713]
our new door code: [8842]
you can unlock my phone with [250991]
the pin of the SIM card is [0000] and the PUK is [83920174]
For the safe it's [12-34-56]; the backup code is [778812]
Remember the password [Xk9#mm2!] for the bank
i set the password of the NAS to [quiet purple river]
passphrase: [gentle otter climbs ladders daily]
My passphrase is "[to be or not to be 77]"
my passcode is [three blind mice]
My card is [4111 1111 1111 1111], cvv [737]
The CVC is [123]
The secret key is [9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c]
Meine PIN wurde von [1234] auf [9876] geändert
Die alte PIN war [4321], die neue ist [8765]
Mein Passwort lautet [rote Katze springt hoch]
Das WLAN-Passwort ist [lila Regen 2024]
Passwort für den Router: [Sonne!Mond7]
Der Türcode ist [4711], der Code der Garage [0815]
Ich habe das Kennwort von [Herbst22] auf [Winter23] geändert
Das Passwort ist jetzt [vier kleine graue Mäuse]
Die Geheimzahl meiner Karte ist [5512]
Handy-PIN [9911], Karten-PIN [2288]
Meine Kreditkarte ist [4111111111111111], Prüfnummer [737]
Mon code PIN est passé de [1234] à [9876]
L'ancien mot de passe était [tulipe99], le nouveau est [Rose-jardin7]
Mon mot de passe est [cheval correct batterie agrafe]
Le mot de passe du wifi est [trois petits chats noirs]
Le code de la porte est [4482] et celui du garage [9917]
J'ai changé le mot de passe en [Lune!Soleil8]
mot de passe : [Zebre-41x]
Le code de ma carte bleue est [7741]
Le digicode est [48B92]
Mi PIN cambió de [1234] a [9876]
La contraseña vieja era [tulipan99] y la nueva es [Rosa-jardin7]
Mi contraseña es [caballo correcto batería grapa]
La clave del wifi es [tres gatos negros duermen]
El código de la puerta es [4482] y el del garaje [9917]
Cambié la contraseña de [Verano22] a [Invierno23]
contraseña: [Zebra-41x]
El PIN de mi tarjeta es [7741]
Mi tarjeta es [4111 1111 1111 1111] y el CVV [737]
Our alarm code was changed from [2207] to [9034] after the break-in
the laptop password is [purple elephants dance nightly]
New passcode for the tablet: [66021]
The PIN of my debit card was [1188] and now it is [4420]
Amazon password [Zugspitze77], please don't lose it
Mein neues Passwort lautet [sieben blaue Zwerge tanzen]
Die PIN habe ich von [7788] auf [1199] geändert
Entsperr das Tablet mit [660211]
J'ai changé le code de l'alarme de [2207] à [9034]
Mon mot de passe est [soleil rouge grande montagne]
He cambiado el PIN de [7788] a [1199]
Mi contraseña es [perro azul casa grande]
""".strip().splitlines()

HARMLESS = """
The password is wrong again
My password is too long to remember
the password is the same as before
My password is in the drawer
the wifi password is on the back of the router
The password is case sensitive
my password was stolen last week
The password is not working any more
the password is going to expire in 14 days
The password is stored in the vault
I changed my password from home yesterday
I changed my password on 12 March 2026
the passphrase is something only Anna knows
My PIN is blocked after 3 tries
The PIN has 4 digits
PIN changed on 12 May 2025
the code review moved from 1430 to 1600
The price changed from 1200 to 1350
The meeting moved from 1000 to 1130
Our ticket number changed from 4471 to 4472
The area code changed from 0301 to 0309
the zip code is 10115
The dress code is smart casual and black tie
Error code 4040 came up twice
the country code is 0049
The key to success is hard work every day
The password is easy for her to guess
the password is what Anna said it was
My password is expired
The password is a sentence from a book
The password is written on the fridge
Das Passwort ist falsch
Das Passwort ist zu kurz für die Bank
Mein Passwort ist abgelaufen und muss erneuert werden
Das Passwort ist in der Schublade
Das Passwort steht auf der Rückseite
Die PIN hat vier Stellen
Der Preis stieg von 1200 auf 1350
Die Sitzung wurde von 1000 auf 1130 verschoben
Das Passwort ist mir nicht eingefallen
Die Postleitzahl ist 10115
Das Passwort ist immer noch dasselbe
Le mot de passe est incorrect
Le mot de passe est trop court pour le site
Mon mot de passe est dans le tiroir
Le mot de passe est toujours le même
Le mot de passe est écrit au dos du routeur
Le code PIN a 4 chiffres
Le prix est passé de 1200 à 1350
Le code postal est 75011
Le mot de passe ne marche plus depuis hier
La contraseña es incorrecta
La contraseña es demasiado corta para el banco
Mi contraseña está en el cajón
La contraseña es la misma de siempre
La contraseña no funciona desde ayer
El PIN tiene 4 cifras
El precio subió de 1200 a 1350
El código postal es 28013
La clave del éxito es el trabajo duro
La clave del problema es la falta de tiempo
The password is required for admin access
My password is weak according to Anna
the wifi password is displayed during startup
our password is shared between three people
My password is getting old
The password is printed below the barcode
The code went from 4000 to 5200 lines
the pin count went from 1200 to 1400 visitors
My password is his birthday
The PIN arrives by post within 10 days
Unlock the door with 2 turns
You can unlock it with 2000 points
Das Passwort ist leider wieder falsch
Das Passwort ist nirgends notiert worden
Mein Passwort ist leicht zu erraten
Le mot de passe est probablement périmé maintenant
Le mot de passe est obligatoire pour entrer
La contraseña es fácil de adivinar
La contraseña es obligatoria para entrar
Mi contraseña es probablemente antigua
The password policy is changing next month
I drove from 1100 to 1300, the code worked
the password was Anna's idea
password rules: twelve characters minimum
""".strip().splitlines()


def test_each_value_of_a_sentence_is_found_and_what_is_only_said_of_one_is_not() -> None:
    wanted, missed = 0, []
    for line in SECRETS:
        text = re.sub(r"[\[\]]", "", line)
        found = [text[secret.start : secret.end] for secret in find_secrets(text)]
        values = re.findall(r"\[(.*?)\]", line)
        wanted += len(values)
        missed += [(value, text) for value in values if not any(value in one for one in found)]
    assert len(missed) <= wanted * 0.06, missed
    assert [line for line in HARMLESS if find_secrets(line)] == []


CODE_WORDS = """
The code word is [zebra]
The code word is [fox]. Only Anna knows it.
The code word for picking up the kids is [purple elephant]
our codeword is [Marmalade], remember that
My safe word is [pineapple]
code word: [zebra]
The code word is "[zebra]"
my code word for the bank is [maple-leaf]
the code word's [zebra]
the answer to the security question is [Bello]
the alarm code is [4711]
alarm code [4711]
the gate code is [2580]
The door code changed to [9912]
the garage opens with [4711]
the keysafe is [4711]
the safe combination is [12-34-56]
the combination to the safe is [left 12, right 34, left 56]
the passphrase is [otter]
The password's [zebra99]
Das Codewort ist [Zebra]
Das Codewort lautet [Roter Elefant]
Unser Kennwort für die Kita ist [Giraffe]
Das Losungswort ist [Sesam]
Das Passwort ist [Schmetterling], sag es keinem.
Der Zugangscode ist [A1B2]
Alarmcode [4711]
Die Kombination vom Safe lautet [17 29 41]
Das Fahrradschloss ist [4711]
Le mot de code est [zèbre]
mot secret : [zèbre]
Le mot de passe est [Zèbre]. Garde-le pour toi.
le code du portail est [2580B]
la combinaison du coffre est [12-34-56]
Le cadenas est [4711]
La palabra de seguridad es [girasol]
Nuestra palabra clave es [cebra]
La contraseña es [Cebra]
la clave es [cebra77]
La clave de la alarma es [4711]
clave: [cebra77]
el código de la caja fuerte es [4711]
""".strip().splitlines()

NO_CODE_WORDS = """
the dress code is casual
The dress code is smart casual
Der Dresscode ist leger
le code vestimentaire est décontracté
my postcode is 4711
my postcode is SW1A 1AA
the area code is 0170
error code 404
the error code is 404
the promo code is SAVE20
use promo code SAVE20
the referral code is ANNA2024
the flight code is LH4711
the project code is 4711
The code word is on the fridge
The code word is secret
The code word is a secret
I forgot the code word
What is the code word?
the code word changed
the code word is easy to remember
The code word is pretty long
The key word is patience
The keyword is content
the code is broken
the building code 2018 is strict
the combination of milk and honey is great
The combination is unusual
The show opens with 2000 dancers
the alarm is at 0700
Das Codewort ist geheim
Das Codewort ist leicht zu merken
Das Stichwort ist Geduld
Die Kombination aus Rot und Blau ist schön
Was ist das Codewort?
le mot de code est secret
le mot clé est important
la combinaison de ski est bleue
la palabra clave es importante
la clave es la paciencia
la clave del éxito es 1000 horas de práctica
La clave es la constancia
la combinación de colores es bonita
The password is wrong, again.
Das Passwort ist falsch. Schon wieder.
""".strip().splitlines()


def test_code_words_and_what_opens_a_door_are_secrets_in_four_languages_and_other_codes_are_none() -> None:
    wrong = []
    for line in CODE_WORDS:
        text = re.sub(r"[\[\]]", "", line)
        found = [text[secret.start : secret.end] for secret in find_secrets(text)]
        if found != re.findall(r"\[(.*?)\]", line):
            wrong.append((line, found))
    assert wrong == []
    assert [line for line in NO_CODE_WORDS if find_secrets(line)] == []
