"""Words of English by what they tell of a sentence: whose life it is about, how long it holds. Pure.

What always holds: a class holds words of any life, none that belong to one person; a word may be in several. Plurals
and the possessive are found by their singular.
"""

from __future__ import annotations

from assistant.core.text import lazy_regex

_CLASSES = {
    "kin": """
        mum mam mom mama mother dad papa father parent wife husband partner spouse fiance fiancée boyfriend
        girlfriend ex son daughter kid child children baby toddler twin brother sister sibling stepson stepdaughter
        stepdad stepmum stepfather stepmother gran nan nana grandma grandmother granny grandad grandpa granddad
        grandfather grandson grandkid granddaughter grandchild auntie aunt aunty uncle cousin niece nephew godson
        goddaughter godmother godfather godchild in-law mother-in-law father-in-law brother-in-law sister-in-law
        son-in-law daughter-in-law family missus hubby boys girls youngest eldest oldest widow widower orphan
    """,
    "person": """
        landlord landlady tenant lodger flatmate housemate roommate neighbour neighbor friend mate colleague
        coworker boss manager supervisor teacher tutor headteacher coach trainer mentor instructor doctor gp dentist
        physio therapist counsellor optician vet nurse midwife consultant surgeon specialist hairdresser barber
        plumber electrician builder carpenter roofer gardener cleaner nanny childminder babysitter accountant
        bookkeeper solicitor lawyer notary broker agent mechanic client customer supplier secretary assistant intern
        apprentice guy lady postman milkman caretaker janitor carer pastor vicar priest imam rabbi director editor
        professor caller handyman joiner
    """,
    "pet": """
        pet cat dog puppy kitten rabbit hamster horse pony hen chicken parrot budgie tortoise goldfish greyhound
        guinea-pig bee sheep goat cow alpaca terrier spaniel labrador collie lurcher ferret gecko
    """,
    "home": """
        rent mortgage landlord flat house home apartment cottage cabin bedroom kitchen bathroom loft attic cellar
        basement garage shed garden allotment balcony boiler radiator heating thermostat fusebox meter stopcock roof
        chimney gate doorbell key keysafe lock alarm wifi wi-fi router broadband password passcode passphrase pin
        code combination bin recycling postcode address street lease deposit lodging parking permit council-tax
        electricity gas water tenancy shop bakery office studio workshop salon clinic practice farm field barn plot
        boat van caravan room cupboard supplier energy tariff landline intercom buzzer council drawer safe freezer
        fridge washing-machine dishwasher oven sofa
    """,
    "vehicle": "car bike bicycle motorbike scooter van lorry truck campervan mot reg plate logbook tyre moped",
    "work": """
        timesheet roster placement lecture seminar payslip probation viva client lab rep parental maternity
        paternity sabbatical job work shift rota payday salary wage pension payroll notice contract office
        department team standup stand-up deadline thesis dissertation phd degree course module semester term exam
        interview internship apprenticeship promotion commute manager business company firm invoice tax vat
        freelance overtime union school nursery preschool kindergarten college university uni campus homework club
        scouts lesson class tuition route
    """,
    "health": """
        allergy allergic anaphylaxis epipen intolerant intolerance coeliac celiac lactose gluten diabetes diabetic
        insulin asthma asthmatic inhaler epilepsy migraine arthritis adhd autistic autism dyslexic dyslexia
        dyspraxia deaf blind colour-blind pregnant pregnancy surgery operation op knee hip chemo cancer tumour
        biopsy diagnosis diagnosed medication meds tablet pill prescription dose dosage antibiotic statin penicillin
        ibuprofen hearing-aid wheelchair crutches physio bloods blood scan smear check-up checkup vaccination jab
        injection hives rash vegetarian vegan veggie pescatarian kosher halal teetotal sober pacemaker hay-fever
        hayfever eczema psoriasis vertigo tinnitus dairy peanut nut shellfish thyroid levothyroxine metformin throat
        specs glasses contacts brace lens lenses dialysis dentures implant vaccine jab patch hormone menopause ivf
        anaesthetic aspirin paracetamol codeine latex wasp sesame soy wheat gallbladder appendix earplugs bloodgroup
        slipped disc sciatica fracture hernia asthma eczema sprain tendon ligament endometriosis ibs crohn parkinson
        dementia alzheimer stroke anxiety depression anaemia anaemic
    """,
    "pastime": """
        choir yoga pilates gym swimming swim football rugby cricket tennis badminton squash netball hockey judo
        karate climbing bouldering running parkrun cycling ballet dance dancing salsa tango pottery ceramics
        knitting sewing crochet painting photography band orchestra rehearsal piano violin cello guitar drum drums
        flute trumpet clarinet saxophone ukulele harp organ tenor soprano alto bass chess bridge poker darts bowls
        fishing sailing rowing surfing skiing hiking allotment beekeeping gardening baking book-club volunteer
        volunteering church mosque synagogue mass quiz training practice practise grading drama theatre improv
        fencing archery golf walking-group
    """,
    "admin": """
        passport licence license visa insurance policy insurer bank account savings isa loan budget subscription
        membership overdraft card number phone email e-mail surname birthday anniversary wedding funeral christening
        bar-mitzvah graduation appointment viewing completion move trip holiday flight ferry booking hotel
        reservation honeymoon retirement will deeds warranty renewal custody divorce citizenship postbox locker
        birth nationality religion language size height weight maiden nickname pronouns name shoe ring waist inseam
        completion english welsh irish gaelic french german spanish portuguese italian dutch polish czech slovak
        hungarian romanian bulgarian greek turkish arabic hebrew farsi persian hindi urdu bengali tamil punjabi
        gujarati mandarin cantonese japanese korean vietnamese thai tagalog swahili yoruba igbo amharic somali
        norwegian swedish danish finnish icelandic estonian latvian lithuanian russian ukrainian serbian croatian
        albanian catalan basque
    """,
    "recurring": """
        every each always never usually whenever normally generally mostly weekly fortnightly monthly yearly
        annually annual daily nightly quarterly alternate mondays tuesdays wednesdays thursdays fridays saturdays
        sundays weekdays weekends mornings evenings afternoons nights bi-weekly biweekly termly hourly seldom rarely
    """,
    "food": """
        coffee tea sugar milk meat fish bread egg cheese butter wine beer alcohol caffeine decaf espresso chocolate
        fruit vegetable coriander garlic onion mushroom tomato olive liquorice marmite tofu seafood pork beef lamb
        bacon soya oat honey spice curry
    """,
    "since": "since until till onwards anymore nowadays now permanently forever originally formerly",
    "moment": """
        today tonight just currently atm moment again still yesterday earlier later soon brb minute minutes sec
        second already later tomorrow nearly almost finally lately
    """,
    "mood": """
        tired knackered exhausted sleepy hungry starving thirsty bored grumpy cranky happy sad glad annoyed cross
        stressed excited nervous shattered drained hungover cold hot sweaty ill poorly rough asleep awake busy lost
        stuck confused curious sorry ready fine ok okay afraid worried wet soaked upset pleased proud jealous
        lonely fed-up gutted chuffed starved freezing boiling mad mood mess sick dizzy dead wrecked
    """,
    "weather": """
        weather raining rain rainy sunny sun snow snowing snowy windy wind storm stormy fog foggy hail drizzle
        drizzling humid degrees forecast frost heatwave icy cloudy clouds thunder sunset sunrise sky
    """,
    "desk": """
        file files line paragraph sentence phrase phrasing wording word words draft version option suggestion bullet
        column cell table chart slide heading title template error bug function variable code-block script test
        tests build branch commit repo loop array string list query regex syntax stack link page website browser tab
        button app cursor document doc spreadsheet pdf screenshot printout summary answer example step essay
        paragraph intro conclusion tone poem limerick joke story song film movie episode series recipe article
        podcast video game match score printer output response reply prompt image picture photo caption headline
        text calculation formula keyboard download upload server container deploy pipeline footnote chapter synonym
    """,
    "praise": """
        great perfect brilliant lovely nice awesome amazing excellent fantastic wonderful terrible awful horrible
        boring weird funny hilarious ridiculous beautiful gorgeous stupid annoying interesting cute sweet wow
        useless overrated underrated disgusting delicious tasty star legend hit
    """,
    "world": """
        politician politicians government minister president economy inflation scientists
        researchers science history universe planet earth moon capital population world century
        empire king queen war humans animals species dinosaur celebrity
    """,
    "joke": "haha lol lmao rofl jk kidding joking hehe hahaha xd",
}
_BY_WORD: dict[str, frozenset[str]] = {}
for _name, _words in _CLASSES.items():
    for _word in _words.split():
        _BY_WORD[_word] = _BY_WORD.get(_word, frozenset()) | {_name}
_NONE: frozenset[str] = frozenset()
_TOKEN = lazy_regex(r"[a-zà-ÿ]+(?:-[a-zà-ÿ]+)*(?:'[a-z]+)?")
_TAIL = lazy_regex(r"'(?:s|ll|d|ve|re)?$")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without numbers."""
    return _TOKEN.findall(text)


def classify_word(word: str) -> frozenset[str]:
    """What a word in lower case tells; empty where nothing is known of it."""
    word = _TAIL.sub("", word)
    found = _BY_WORD.get(word)
    if found is None and word.endswith("s") and len(word) > 3:
        found = _BY_WORD.get(word[:-1])
        if found is None and word.endswith("ies"):
            found = _BY_WORD.get(f"{word[:-3]}y")
        if found is None and word.endswith("es"):
            found = _BY_WORD.get(word[:-2])
    if found is None and "-" in word:
        return frozenset().union(*(classify_word(part) for part in word.split("-") if part))
    return found or _NONE
