"""What facts are made of: the kind of value, the fact, and two ways to ask for it in other words. {n} is a name, {p} a
place, {t} a thing, {v} the value. Of a question only those are the fact's own words, or one of them and a word more."""

from __future__ import annotations

WORDINGS = """
identifier | By the way, {n} gave me the access code for the {t}: {v}.
How do I unlock the {t} of {n}?
I am standing outside, what does {n} type to enter the {t}?

number | The deposit we paid {n} for the {t} came to {v} euros.
How much of our money does {n} hold because of the {t}?
When the {t} is handed back, what amount should {n} return?

date | {n} gets married in {p} on {v}.
When is the wedding of {n} in {p}?
For the ceremony in {p}, which evening do I keep free for {n}?

name | The electrician in {p} who understood the {t} straight away is called {v}.
Who did the wiring of the {t} over in {p}?
Somebody clever with cables helped in {p}, at the {t}; remind me who?

identifier | My traveller card with the ferry line to {p} carries {v}.
Which membership do I show the ferry people for {p}?
Sailing to {p} again: under which account do the ferry points land?

number | The radiator of the {t} at {p} needs a valve of type {v}.
Which part should I buy so that the heating works again, for the {t} in {p}?
It is cold in the {t}, what spare does the plumber bring to {p}?

date | The inspection of the {t} was moved to {v}, {n} told me.
{n} mentioned another appointment for the check of the {t}, which one?
Has {n} said when officials look at the {t}?

name | {n} takes piano lessons from {v} in {p}.
Who teaches {n} music down in {p}?
The tutor that {n} practises scales with, somewhere in {p}, who is it?

identifier | The warranty of the {t} from that shop in {p} is filed as {v}.
Under what do I claim if the {t} that I got in {p} breaks?
The seller in {p} wants a reference before any free repair of the {t}.

number | In {p} the storage unit with everything for the {t} is number {v}.
Behind which door in {p} did we lock away what belongs to the {t}?
Movers are in {p} to fetch boxes for the {t}, where do they go?

date | The passport of {n} runs out on {v}.
Until when can {n} cross borders with that passport?
Does {n} have to renew the passport soon, what is stamped in it?

name | The landlord of the flat that {n} has in {p} is {v}.
Whom does {n} pay the rent to, in {p}?
{n} wants to complain about mould in {p}, who owns the building?

identifier | The booking of the {t} tour in {p} runs under {v}.
What do I tell the guide about our {t} trip in {p}?
At the ticket desk in {p} they ask for our {t} reservation.

number | The meter at the {t} of {n} stood at {v} when I read it.
What counter value did I write down, for {n} and the {t}?
The utility company wants the old figure of the {t}, {n} forgot it.

date | The lease of the {t} near {p} ends on {v}.
By when must we be out of the {t} around {p}?
How long may we still use the {t} at {p}, what did we sign?

name | {n} wants the {t} to be painted by {v}.
Which craftsman did {n} pick to give the {t} its new colour?
Brushes and ladders at the {t}: whose work does {n} trust?

identifier | The parcel with the lamp for the {t}, the one to {p}, is tracked as {v}.
How can I look up the shipment to {p} that was meant for the {t}?
The courier lost something between here and {p}, for the {t}; what do I quote?

number | The architect {n} sits in office {v} in {p}.
Which room do I go to when I see {n} in {p}?
I am at the reception in {p}, and where do I find {n}?

date | {n} starts the new job in {p} on {v}.
From what day does {n} work over in {p}?
Flowers for the first morning of {n} at the company in {p}, when is that?

name | The vet who treated the dog by the {t} in {p} was {v}.
Which animal doctor helped us at the {t} in {p}?
Our puppy limped near the {t} at {p}, who bandaged the paw?

identifier | Our seats for the concert with {n} in {p} are {v}.
Where do {n} and I sit at the show in {p}?
The usher in {p} wants to see which row {n} chose.

number | {n} asked me to wire {v} crowns for the repairs of the {t}.
What sum does {n} expect from me for fixing the {t}?
The bank transfer about the {t}, how high is it, says {n}?

date | The {t} in {p} is closed for the season from {v} on.
Since when can nobody enter the {t} in {p}?
Visitors to {p} find the {t} shut after which afternoon?

name | At the bank in {p} the adviser of {n} is {v}.
Who looks after the savings of {n} in {p}?
{n} talks about shares with somebody in {p}, with whom?

identifier | The alarm of the {t} is silenced with {v}, says {n}.
That siren howls at the {t}, what did {n} use against it?
How does {n} switch off the noise when somebody breaks into the {t}?

number | The oak boards for the {t} that {n} ordered weigh {v} grams each.
How heavy is one plank of {n} for the {t}?
The carrier of what {n} bought for the {t} charges by mass, which?

date | Our tenant in {p} hands back the {t} on {v}.
When is the {t} in {p} ours again?
After which weekend does nobody rent the {t} at {p}?

name | The midwife of {n} in {p} is {v}.
Who was there when the baby of {n} came, in {p}?
{n} sends thanks for the birth, to which nurse in {p}?

identifier | The boiler in the {t} shows the fault {v} when {n} turns it on.
What error did {n} see on the heater of the {t}?
The service hotline asks {n} what blinks on the display in the {t}.

number | The fence around the {t} in {p} is {v} millimetres long.
How far does the railing reach about the {t} at {p}?
I order wire mesh for the {t} at {p}: which measure?

date | {n} has the knee operated on {v}, in {p}.
When is the surgery of {n}, the one in {p}?
Which week do we visit {n} at the clinic in {p}?

name | {n} bought the {t} from {v}.
Who was the previous owner of what {n} has now, the {t}?
The seller of the {t}, {n} knows, what were they called?

identifier | The router at the {t} in {p} answers to the word {v}.
How do I get online at the {t} in {p}?
My laptop wants a login for the wireless of the {t}, there in {p}.

number | The taxi driver {n} in {p} has the call sign {v}.
Which cab do I ask for if I want {n} again in {p}?
At the rank in {p} I look for {n}; what is written on the roof?

date | The mortgage on the {t} is paid off on {v}, {n} worked it out.
When are we free of debt for the {t}, by the sums of {n}?
{n} calculated the last instalment of the {t}, when does it fall due?

name | The choir that {n} sings with in {p} is led by {v}.
Who conducts when {n} performs in {p}?
The concert leaflet of {n} in {p} names which maestro?

identifier | The seed mix that {n} sowed behind the {t} is sold as {v}.
I want the same meadow as {n} has at the {t}, what do I order?
What flowers grow there at the {t}, from which packet of {n}?

number | The prize draw ticket {n} bought in {p} has {v} on it.
Did {n} win in {p}, which lottery digits are ours?
The raffle of {p} published its results, what must {n} compare?

date | The grandparents move from {p} into the {t} on {v}.
When do the old folks leave {p} for the {t}?
The removal van drives from {p} to the {t}, on which morning?

name | The mason who built the chimney of the {t} for {n} is {v}.
{n} has smoke in the {t}, which bricklayer should come?
Whose handiwork is the fireplace at the {t}, does {n} recall?

identifier | {n} keeps the tools for the {t} in crate {v}.
Where would {n} look for the hammer that belongs to the {t}?
Which box does {n} open for spanners at the {t}?

number | The marathon in {p} gave {n} the bib {v}.
How do I spot {n} among the runners in {p}?
Race photos from {p} are sorted by athlete, what does {n} wear?

date | The exhibition of {n} in {p} opens on {v}.
When is the vernissage of {n} over in {p}?
First chance to see the pictures of {n} in {p}?

name | The lawyer who settled the matter of the {t} for {n} is {v}.
Which attorney does {n} thank for peace about the {t}?
In the quarrel over the {t}, who stood up in court for {n}?

identifier | The engine of the {t} that {n} drives is stamped {v}.
What is engraved on the motor of the {t}, the one of {n}?
The garage needs to know the model to service the {t} of {n}.

number | The well at the {t} near {p} is {v} centimetres deep.
How far down is the water at the {t} of {p}?
What rope do I need for the bucket by the {t} in {p}?

date | The cat of {n} got its vaccination in {p} on {v}.
When did the kitten of {n} have its shots, at {p}?
The kennel in {p} asks how recent the jab is, for the pet of {n}.

name | The baker in {p} whose rye loaf {n} loves is {v}.
Whose bread should I bring {n} from {p}?
{n} is hungry for sourdough out of {p}, from whose oven?

identifier | The archive in {p} lists the deeds of the {t} under {v}.
Where in {p} are the papers that prove we own the {t}?
The clerk of {p} wants the shelf mark, it is about the {t}.

number | The donation {n} made to the museum in {p} was {v} pounds.
How generous was {n} to that gallery in {p}?
What did the curators of {p} receive from {n}?
"""


def parsed() -> list[tuple[str, str, tuple[str, ...]]]:
    """Kind, fact and questions of each."""
    blocks = [block.splitlines() for block in WORDINGS.strip().split("\n\n")]
    heads = [tuple(part.strip() for part in lines[0].split("|")) for lines in blocks]
    return [(kind, said, tuple(lines[1:])) for (kind, said), lines in zip(heads, blocks, strict=True)]
