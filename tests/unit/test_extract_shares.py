"""Sentences of which the rules need not know every one: what share of the lasting and of the passing is learned."""

from __future__ import annotations

from sleep.rules.extract_statements import extract_statements

# What is known not to be told apart stands here too; the shares say how much that is.
MOST_MISSED = 0.2
MOST_TAKEN = 0.06

TOLD = """
black coffee, no sugar, that's how I have it
my right hand shakes, so short messages from me
Find me a route to the vet, it's Castle Vets on Mill Lane, Pip has been going there for years
Kit uses they/them
Teddy and Wilf are the grandkids
the in-laws get here on the 22nd and stay till new year
we christened her Dorothea but she's Dot to everyone
our tenancy's up at the end of august
Joost from legal is my go-to for contracts
the kid across the road, Amir, has a spare set of keys
I haven't touched alcohol since my accident
blueberries bring me out in a rash
my surname is spelt with two Ls
lessons with Mrs Pike are half six on wednesdays
I clean offices, nights mostly
three sisters, all older than me
he's been my partner since uni
broken sleep is my normal, the youngest wakes at four every day
our energy supplier is Bulb
we keep a float of 200 in the till
the van takes diesel not petrol
the wedding's in Siena, 5 september
I trained as an architect but I bake for a living
Mum goes to the day centre mondays and thursdays
Felix's dad picks him up from school on fridays
visa expires 12 may 2027
the landlady wants rent in cash, first of the month
I've worn glasses since I was seven
never been on a plane in my life
my go-to karaoke song is Jolene
I support Leyton Orient for my sins
dad passed away in 2020
I'm a widow
I've two grandchildren in Perth
the dentist says I grind my teeth so I sleep with a guard in
half my salary goes on childcare
our anniversary is on leap day
can you find a hotel in York? must take dogs, we've got an old whippet
what's good for a cough, can't take ibuprofen because of my stomach
do you do meal plans? I'm training for an ironman in july and I don't eat pork
need a reply to Stan, he's the site manager at our Luton depot
how long to defrost a turkey, there are nine of us at christmas every year
Paulina has left him and moved back to Gdansk
we're getting a new kitchen fitted in may
I finally passed my theory test, practical is on 19 june
the nursery put their fees up, it's 62 a day from january
the cat went to live with my mother
Raj isn't my boss now, it's Helen
I moved the dentist to the 30th
sorry, his name is Iain with two i's
my old address is no good, I'm at 12 Fore Street now
I work from the library on thursdays
the code for the side gate is 5512, changed last week
remember I don't drive
please stop saying 'certainly'
give me times in 24 hour format
always cc Deborah on anything about the grant
our youngest can't sit through films, sensory stuff
I'm the eldest of six
dinner's at seven in our house
for me tea means milk first
we vote in Glasgow Central
kids are with their dad this week, they alternate
Bea's piano exam is grade 5, on 4 july
my aunt Rosalind left me the cottage
oh and my contact lenses are monthlies, minus 3.25
our broadband's with Zen
the council tax comes out on the 1st
mum's maiden name was Farrugia
i go by my middle name, Lowell
little one's childminder is Trish, she's in Portslade
got a season ticket for the Bees
the babysitter gets 10 an hour
our caravan's at Filey, pitch 23
i'm doing an access course, tuesdays and wednesdays
i start at the hospital on the 8th
my probation ends in june
my daughter's violin teacher only takes cash
hay fever from may to july, every single year
i row for the town club
lactose doesn't agree with me
my stepdad built our house
we got engaged at new year!
it's a girl, due the 9th of november
my half sister Ngozi is in Toronto
the spare room is Gran's now
i had my gallbladder out in 2021
our bins are black for rubbish, blue for paper
my boss is on maternity leave till october so i report to Anil
the dog's name is Mustard
my uni login is rkl22
i don't work fridays
the cottage has no heating so we shut it november to march
my budget's tight, 40 a week for food
i was adopted
i've lived in nine countries
my eldest is at Bristol doing chemistry
the landlord won't allow pets
grandad fought at Monte Cassino
i'm scared of heights
we compost everything
my wife's vegetarian so i cook two dinners most nights
i'm blood group AB
neighbours upstairs are the Okonkwos
i use a screen reader
i can only type with one hand
we named him Otis
rehearsals start 3 march, show's the 28th
the car's in my dad's name
the doctor wants me off salt
i sleep with earplugs, light sleeper
our meetings with the school are termly
that's my brother Emeka, the one in the navy
"""

PASSING = """
the new phone has three cameras
god this commute
ok the oven's on
my dinner is in the oven
his email was so rude
the exam went fine I think
I passed!!!
she's coming round later
what's the plural of octopus
my sister thinks you're useless lol
the washing machine is beeping
do you ever get tired
I need to write a speech for saturday
I need 500 words on the water cycle
how much is 14 stone in kg
can you check the tone of this
I've pasted it below
here's the second part
that's my final question
the gym was packed
I overslept
he left his jacket here
my neck is stiff
it's my turn to cook tonight
I'm making lasagne for the kids
going to try that recipe on saturday
the movers are here
the wifi is down
my phone died on the way home
there's a wasp in my room
the delivery guy left it in the rain
my son won't eat his peas
my daughter is refusing to put her shoes on
the dog rolled in something
I dreamt I was late for an exam
I was in the shower
sounds like my old boss
that's what my mum always says
my gran would have loved that
you sound like my dad
I'm not a lawyer, explain it simply
explain it like I'm five
as a teacher would say it
pretend you're a bank and I want a loan of 5,000
a man has three sons, each son has a sister, how many children
if a train leaves Leeds at 9 and travels at 80 mph
Tom has twelve apples and gives away four
my character is a blacksmith called Orin who lost his wife
in chapter two she moves to Paris
the villain lives in a tower
Shakespeare had three children
Lisbon is the capital of Portugal
the office opened in 1999 according to the site
vitamin d is good for bones
the tories won that seat in 2019
I think the ending is weak
the slides look fine on my screen
the invoice template has a typo
sales went up 12 percent in the third quarter
the function returns None every time
the build takes eleven minutes now
the server restarts every night at two
the test fails on fridays, timezone bug
column B has the names
the total should be 4,310
it changed from 12 to 14 after the update
I switched to the dark theme
I moved it to the top
I started a new document
I stopped the script
I changed the title, better?
I've signed in but it's blank
booked! thanks
I called them, nobody picked up
she texted me a photo of her lunch
we nearly missed the ferry
we stayed for one more drink
the concert last night was unreal
the kids are at the park with Sam
my husband is snoring
my mother-in-law is on the phone, help
my neighbour's car alarm has gone off again
happy new year!
it's my birthday today
the bank was closed when I got there
I walked 20,000 steps today
the weekend was too short
two more emails to go
one coffee and I'm human
I've had three coffees
we lost the quiz by one point
ordered a curry
might move to Canada after this meeting
should we get a second cat
would a lodger be a mad idea
thinking of swapping the car for a bike
I hope the surgery goes well for her
fingers crossed for the interview
wish me luck
my bus is late again
my manager just emailed me
my laptop's fan is loud
my eyes are tired
my plan for today is laundry
my question is about tax
my point is that it's too long
my idea was to start with the ending
my first sentence is weak
my wife wants to know what a quasar is
my brother asked me to ask you this
my son has homework on volcanoes, give me three facts
my daughter's class is doing the vikings this week, what should they make
our meeting is in an hour
our order hasn't arrived
our team needs a name for the quiz tonight
the boss is here
the landlord came round about the tap
the neighbours were loud last night
the doctor was running late
the plumber fixed it
the kids had fish fingers
the kids are finally in bed
the car wouldn't start this morning
the rent is due today, just paid it
the cat brought in a mouse
the dog needs a bath
the garden looks lovely today
the kitchen is a mess
the flat is so quiet
the gym was closed
the meeting went well
the interview was awful
the wedding was beautiful
the flight was fine
the hotel was a dump
the doctor said it's nothing
the vet says she's fine
dad says hello
mum thinks it's funny
mum wants me to ring her back
sam is coming for dinner tonight
anna loved the card, thank you
lucy sent me a video of a goat
tom owes me a drink
had a day off
had a row with my sister
had a nap
made a cake
finished the book
finally fixed the tap
bought new shoes
got a parking ticket
got soaked
lost my keys, found them in the fridge
forgot my lunch
missed my stop
going for a run
off to the shops
off to bed
about to have dinner
home at last
no sleep again
so much homework
two hours on hold to the bank
three meetings back to back today
half the team is off sick today
nearly friday
friday at last
mondays, eh
sunday roast time
christmas is coming
is it me or is it hot in here
what a match that was
can't be bothered with dinner
can't get the lid off
could do with a holiday
need a holiday
need coffee
want pizza
love this song
love your work
hate this weather
hate it when that happens
like it
works for me
works a treat, thanks
you're right, it was the fuse
you said the recipe takes an hour but it took two
you keep saying that
you told me it was open on sundays
"""


def test_most_of_what_lasts_is_learned() -> None:
    lines = [line for line in TOLD.splitlines() if line]
    missed = [line for line in lines if not extract_statements(line)]
    assert len(missed) <= MOST_MISSED * len(lines), missed


def test_f29_hardly_anything_of_what_passes_is_learned() -> None:
    lines = [line for line in PASSING.splitlines() if line]
    taken = [line for line in lines if extract_statements(line)]
    assert len(taken) <= MOST_TAKEN * len(lines), taken
