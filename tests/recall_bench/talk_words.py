"""What the generated talks are made of: two halves that share no template and no topic, so that what is fitted to the
first is measured on the second.

A line of `PLANTED` is `kind | asked | said`, with `||` between several things that are said on different days; words in
braces are filled in, the same word alike in all of a line. A line that begins with `bot` is said by the assistant, among
much else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TalkWords:
    """One half."""

    planted: str
    openings: str  # what people ask for, about a {topic}
    asides: str  # small messages
    answers: str  # sentences of long answers about a {topic}, with a {part} of it
    echoes: str  # sentences of an answer to something with the words {one} and {other}
    follow_ups: str  # what the person says next about that
    topics: Mapping[str, str]  # topic: its parts
    slots: Mapping[str, str]

    def lines(self, text: str) -> Sequence[str]:
        return [line.strip() for line in text.strip().splitlines()]


_SLOTS = {
    "name": "Anna, Priya, Marek, Tomas, Ingrid, Farid, Chloe, Naomi, Diego, Leif, Yusuf, Greta, Hugo, Mina, Pavel, Rosa",
    "kin": "sister, brother, cousin, aunt, uncle, neighbour, colleague, flatmate, nephew, niece",
    "city": "Bergen, Lisbon, Porto, Ghent, Krakow, Turin, Malmo, Seville, Leeds, Graz, Tallinn, Nantes, Bologna, Aarhus",
    "city2": "Dublin, Utrecht, Basel, Split, Riga, Ljubljana, Toulouse, Valencia, Gdansk, Oslo, Brno, Cork",
    "day": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday",
    "n": "3, 4, 6, 7, 9, 11, 12, 14, 18, 21",
    "m": "25, 30, 35, 40, 45, 50, 55, 70, 80, 95",
    "amount": "85, 120, 150, 240, 310, 450, 620, 780, 990, 1200",
    "surname": "Halvorsen, Lindqvist, Okafor, Marchetti, Brandt, Novak, Pereira, Castellan, Osei, Varga, Dunmore, Sato",
    "animal": "cat, terrier, parrot, rabbit, tortoise, hamster, greyhound",
    "pet": "Biscuit, Pepper, Mocha, Ziggy, Clover, Nimbus, Tofu, Waffles",
}

SEEN = TalkWords(
    planted="""
passing | Where does my {kin} live now? | Can you check this cover letter? By the way, {name}, my {kin}, has just moved to {city}, so I will be up there more.
passing | What is my {animal} called? | How warm does a room have to be at night? {pet}, my {animal}, sleeps under the radiator.
passing | What is my job? | I spend all day checking bridges for cracks as a structural inspector, so my knees are done. Which shoes would you wear?
passing | How many kilometres did I run in my longest run? | Managed {n} kilometres on Sunday without stopping, further than ever before. What should I eat the evening before the next one?
passing | What am I allergic to? | I come out in hives from penicillin, so the doctor gave me something else. How do I keep track of pills?
passing | What did my bicycle cost? | The new gravel bike set me back {amount} euros, ouch. How do I insure it?
passing | Who is my landlord? | Draft a polite mail to Mr {surname}, who owns our flat, about the leaking tap.
passing | Which instrument am I learning? | My fingers hurt after the second lesson on the cello. Is that normal for a beginner?
passing | What did {name} give me for my birthday? | {name} handed me a brass telescope when I turned thirty. How do I clean its lens?
when | When did I start my new job? | First day at the new office today! They gave me a badge and a plant. Any tips for the first week?
when | When did I visit my dentist? | Back from the dentist, one filling, still numb. When may I drink coffee?
when | When did we move into the flat? | We carried the last boxes into the new flat this morning. How do I find a stud in the wall?
when | When did I see {name} in {city}? | Spent the weekend at {name}'s place in {city}, we cooked and walked a lot. Write a thank you note for me.
preference | Can you suggest something for dinner tonight? | I never touch mushrooms, the texture is awful. || Honestly, Thai curries are what I could eat every day. || I went vegetarian in spring, so no bacon for me.
preference | Can you recommend a hotel for my trip to {city2}? | I sleep badly in big noisy places, I always take small family-run inns. || For me a place to stay needs a bathtub and a late breakfast.
preference | What would you recommend to watch this weekend? | I love slow documentaries about nature, the longer the better. || Horror films give me nightmares for weeks. || I've finished everything by that Danish crime director and want more of it.
preference | Could you suggest some exercise I could do in the mornings? | My left knee was operated on, jumping is out of the question. || I enjoy swimming more than anything else that makes me sweat.
preference | Any ideas what I could give my {kin} for Christmas? | My {kin} collects old maps, the walls are full of them. || Whatever you do, my {kin} hates gadgets that need charging.
instruction | How should you write mails for me? | From now on sign all mails with just my initials, and keep them under a hundred words.
instruction | In which units do I want recipes? | Please always give me weights in grams, never in cups.
instruction | How do I want my code formatted? | Whenever you show me Python, use type hints and no comments.
instruction | Which language should the shopping list be in? | Keep the shopping list in Spanish, please, I'm practising. Do that every time.
correction | What is my flight number to {city}? | My flight to {city} is KL{m}{n}, leaving early. || Sorry, I mixed that up, the flight is KL{n}{m}, not what I told you before.
correction | How old is my {kin}? | My {kin} turns {m} in autumn. || I miscounted, my {kin} is going to be {n}{n} this autumn, not what I said.
correction | On which day is the parents' evening? | The parents' evening is on {day}. || No wait, they changed the note, it is the second Friday of the month for the parents.
update | How long is my commute? | The commute takes me {m} minutes each way. What can I listen to? || With the new tram my way to work is down to {n} minutes.
update | How many followers does my photo page have? | My photo page just passed {m} followers. How do I grow it? || Wow, the page with my photos has {amount} followers now!
update | How much do I pay for rent? | Our rent is {amount} a month, is that a lot for {city}? || They raised it: from May on we pay {m} more for the flat each month.
update | What do I weigh? | The scale says {m} kilos this morning, more than I like. || Down another {n} pounds since I stopped eating late, the scale says!
assistant | Which restaurant did you recommend in {city}? | bot In {city} you might like the {surname} Kitchen near the market: small, no reservations, and the fish soup is known beyond the town.
assistant | What was the third book you told me about on habits? | bot Three that are worth the time on habits: "The Slow Ledger", "Small Hinges", and "A Year of Mornings" by {surname}.
assistant | Which stretch did you suggest for my back? | bot For a stiff lower back the one called the supine figure four does most: lie down, cross an ankle over the other knee, pull gently.
assistant | What did you tell me about descaling the kettle? | bot Limescale comes off a kettle with one part citric acid to ten parts water, boiled once and left for {m} minutes.
assistant | How did you explain compound interest to me? | bot Think of interest on interest as a snowball: at {n} percent it doubles about every 72 divided by that many years.
ordering | Can you list the order in which I visited the cities this year? | Just got back from {city}, lovely old harbour. What should I cook that tastes like there? || Two days in Vienna for the museum, my feet are done. || I'm writing from a cafe in Rome, the train was late. How do I claim the fare back? || Next stop was Hamburg for the trade fair, rainy but good.
ordering | In which order did I read the novels? | Finished "Salt Roads" in one sitting. || "The Glass Orchard" took me three weeks, but what an ending. || I put down "Ninth Harbour" last night with tears in my eyes.
ordering | Can you put the repairs of the house in order for me, first to last? | The plumber came and replaced the boiler valve. || Roof tiles are fixed at last, {amount} euros. || They sealed the bathroom window today, no more draught. || The electrician rewired the cellar this week.
several | How many concerts did I go to? | The string quartet at the church was wonderful, I nearly cried. || Stood in the first row when the Lanterns played, my ears still ring. || {name} took me to a jazz night in the harbour, great drummer.
several | What are all the things I bought for the garden? | Got two bags of compost for the beds. || The new hose is {m} metres, that reaches everything. || I couldn't resist and ordered a cherry tree.
several | How much money did I spend on the car altogether? | New winter tyres, {amount} euros, gone. || The brakes were {m} euros more than quoted. || Paid the insurance for my old Volvo, {amount} this time.
several | Which sports have I tried since summer? | Climbing with {name} was scary but fun. || I took a trial class in fencing, the masks smell! || My arms hurt from rowing on the lake yesterday.
""",
    openings="""
Can you help me with the {topic}? I don't know where to start.
What should I know about the {part} before I go on with the {topic}?
Give me a plan for the {topic}, please, with the {part} first.
I'm stuck with the {part}. What would you do?
Explain the {part} to me as if I were twelve.
Is it worth spending money on the {part} for a {topic}?
How do other people handle the {part} when they do a {topic}?
Compare two ways to go about the {part}, and say which you like better.
Could you write a checklist for the {topic}? Mind the {part}.
What can go wrong with the {part}?
""",
    asides="""
Thanks, that helps.
Great, I'll try that.
Hm, can you make it shorter?
And what would that cost?
Could you say more about the second point?
Perfect.
I don't get the last part.
OK, and how long does it take?
""",
    answers="""
The {part} is where most people lose time, so begin there and write down what you see.
For a {topic} it helps to decide early what "good enough" means.
If the {part} gives trouble, step back and check whether the simplest cause explains it.
A small test with the {part} costs an evening and saves a month.
Many guides to a {topic} skip the {part}, although it decides how the rest feels.
Keep a list of what you tried, with dates, since memory is a poor notebook.
You could ask somebody who has done a {topic} before, they will know the usual traps.
With the {part} settled, the next step is to set a limit for money and time.
I would not buy anything for the {part} until you know how often you need it.
Take a picture before and after, so that you can compare.
Here is a simple order: first the {part}, then the rest of the {topic}, and a review at the end of the week.
Some prefer to hire help for the {part}, which is fair where safety is concerned.
What you like about it matters as well: a {topic} that you enjoy is one that you finish.
A common mistake is to do the {part} twice because the first time was not noted.
In the end the choice is between speed and calm, and for the {part} calm wins.
Let me know how the {part} goes, and we can adjust the plan.
""",
    echoes="""
As for {one}, that is good to know.
I see, {one} and {other}: let me think about that with you.
With {one} there are two things to watch.
Thank you for telling me about {one}.
People often ask about {other} in that situation, and the answer depends on {one}.
That sounds like a lot, {one} in particular.
""",
    follow_ups="""
And what about {one}?
I also wonder about {one} and {other}.
Tell me more on {one}, please.
So {one} is fine, you think?
How did you get to {one}?
""",
    topics={
        "vegetable garden": "soil, watering, tomatoes, compost, fence, seedlings",
        "kitchen renovation": "worktop, tiles, sink, drawers, budget, lighting",
        "city trip": "trains, hotel, museum, luggage, tickets, restaurants",
        "marathon": "training plan, shoes, long runs, stretching, food, sleep",
        "job application": "cover letter, salary, interview, references, portfolio, start date",
        "birthday party": "guests, cake, music, presents, decorations, invitations",
        "photo archive": "backup, folders, dates, duplicates, prints, scanner",
        "bicycle repair": "brakes, chain, gears, tyres, tools, insurance",
        "language course": "vocabulary, grammar, tandem partner, exam, accent, homework",
        "household budget": "rent, savings, groceries, insurance, subscriptions, spreadsheet",
    },
    slots=_SLOTS,
)

UNSEEN = TalkWords(
    planted="""
passing | What is the name of my physiotherapist? | Need an excuse for missing a session: Ms {surname} is treating my shoulder and hates no-shows. Make it funny.
passing | Where did I study? | Reading my old notes from the University of {city2}, I barely understand my own thesis. Summarise what a Markov chain is?
passing | What kind of car do I drive? | The little grey Fiat won't start when it is damp outside. Any idea what it could be?
passing | Which school does my daughter go to? | My girl comes home from Riverside Primary with a new word every day. Ideas for spelling games?
passing | What do I take in my coffee? | One oat flat white in and I'm still sleepy. Does caffeine ever stop working?
passing | How much did I save for the holiday? | There's {amount} in the jar for our trip by now, all coins! Where does that get us in August?
passing | What is my wifi router called? | Our router, the one I named "Moonbase", drops the line every evening at {n}. Help me find out why.
passing | Who taught me to bake bread? | Old Mrs {surname} from downstairs showed me how a sourdough wants to be folded. How hot is your ideal oven?
passing | What did I break last winter? | Ever since I fractured my wrist on the ice I type with one hand. Is there good dictation software?
when | When did {name} and I adopt the {animal}? | It's official, {name} and I are now owners of a {animal} from the shelter! What do we feed it?
when | When did I hand in my thesis? | Thesis is printed, bound and handed in. I feel empty. What does one do with free evenings?
when | When was the power cut? | No electricity since lunch, I'm typing on the phone. What in the fridge is still safe?
when | How long ago did I stop smoking? | That was my last cigarette, threw the rest of the packet away. Distract me with a riddle.
preference | Please plan a Saturday that I would enjoy. | Museums bore me to death, I'd rather be out in the woods. || There is nothing better than a flea market with a hot chocolate in hand. || I get seasick, so boats are not my thing.
preference | What should I read next? | Anything with dragons makes me put it back on the shelf. || I devour biographies of scientists, women in particular.
preference | Would you help me choose a laptop? | My eyes are tired by glossy screens, I only buy matt ones. || I carry everything on my back, so under a kilo or it stays at home. || I've been burnt by that fruit brand, never again.
preference | Can you come up with a menu for when {name} visits? | {name} is coeliac, so wheat is off the table. || Last time {name} raved about my lentil stew with lemon.
preference | How could I relax after work, what do you think? | Meditation apps make me nervous. || Kneading clay at the potter's wheel calms me like nothing else.
instruction | What must you not forget when you plan my week? | Rule for my calendar: Wednesdays stay empty, whatever anyone asks for.
instruction | How long may your answers be? | I read on a tiny screen, so three sentences at most unless I ask for details.
instruction | What tone do I want for letters to the authority? | When it goes to an office, write it dry and formal, no exclamation marks, ever.
instruction | Which currency do I want to see? | Show me prices in Norwegian kroner as well, I can't think in anything else.
correction | What is the door code of the studio? | The studio door opens with {m}{n}. || Scratch that, I swapped digits: it's {n}{m} at the studio door.
correction | Who is coming to the reading on {day}? | {name} and her husband come to the reading on {day}. || Actually the husband is ill, {name} brings her mother instead.
correction | Where is the workshop held? | The workshop will be at the library in {city}. || I was wrong about the venue, they hold it in the town hall across the river.
update | How many plants do I have? | My count of house plants stands at {n}, all alive. || Two more cuttings rooted, so the jungle has grown to {m} pots.
update | What time do I get up? | Alarm goes at five to feed the horses, I'm a wreck by noon. || New stable hand! I can sleep until seven these days.
update | Which phone do I use? | My old Nokia with buttons does all I need. || Gave in and got a foldable from work, still looking for the keys.
update | What is the highest score I got at bowling? | Personal record at the alley: {m}! || Broke it, {n} pins better than ever before, strike after strike at the lanes.
assistant | Which campsite had you suggested near {city2}? | bot Near {city2} there is Camp {surname}, on a lake, with shade for tents and a baker who comes by at seven.
assistant | You gave me a mnemonic for the planets, what was it? | bot Try this one for the planets: my very eager marmot just sold us noodles.
assistant | What did you say was the right ratio for cold brew? | bot Cold brew likes one part coarse grounds to {n} parts water, {m} hours in the fridge.
assistant | Remind me of the name you came up with for my podcast | bot How about a title with a wink for the podcast: "Kettle and Compass". Runner-up: "{surname} at Midnight".
assistant | Which visa form did you advise me to use? | bot For a stay of more than ninety days it is form B{n}, not B{m}, and it needs two photographs.
ordering | Walk me through the order in which I planted things | The tulip bulbs are in, {n} of them. || Today the pear went into the ground by the wall. || Sowed carrots between two showers. || Put the rosemary into a big clay pot.
ordering | What was the sequence of doctors I went to about my ear? | The GP looked into my ear and shrugged. || Spent an hour in a tube, the ENT man found nothing. || An audiologist played me beeps today. || The neurologist says it is the nerve after all.
ordering | Give me a timeline of how my band came together | {name} is in, we have a drummer! || Found somebody who plays a double bass, of all things. || First rehearsal with the new singer, goosebumps. || We settled on a name, the Tin Herons.
several | How many times did I call the internet provider? | Forty minutes on hold with the provider, then the line died. || The lady at the internet company promised a technician on {day}. || Shouted at the hotline again, not proud of it.
several | List every language I have dabbled in | My Finnish is down to two swear words. || I did a month of Swahili on an app before the trip. || Latin at school left me with scars. || Currently I learn Korean letters on the bus.
several | What have my children been ill with? | Little one has chickenpox, spots everywhere. || Both kids are coughing through the night. || The boy has an ear infection, antibiotics again.
several | Which people have helped me with the move? | {name} lent us a van, hero. || My {kin} wrapped every single glass. || The lads from the football club took the piano down four floors!
""",
    openings="""
I want to get going with my {topic}, talk me through it.
So about the {part}: does one really need it?
Somebody told me that the {part} matters most in a {topic}. True?
Draft something I can send around about the {topic}.
My {part} is a mess again.
Tell me three things about the {part} that nobody says aloud.
How would a professional go about the {part}?
Rank the options for the {part}.
Why does the {part} take me so long?
Let's brainstorm about the {topic}, the {part} in particular.
""",
    asides="""
Makes sense, cheers.
Ha, no.
Go on.
Number two sounds right to me.
You lost me there.
That's too long, in one line please.
Nice one!
Would that work in winter too?
""",
    answers="""
There are roughly three schools of thought about the {part}, and they agree on less than you would think.
Professionals treat the {part} as a routine and not as an event.
What makes a {topic} hard is rarely the {part} itself but the waiting around it.
Put the {part} in the calendar on a fixed day, and it stops being a decision.
On the one hand the {part} can be done cheaply; on the other, cheap means doing it again.
You said that you want it to be simple, so leave out whatever you would not miss.
A rule of thumb: give the {part} a third of the time that you have.
If you share the {topic} with others, agree on who has the last word.
Look for the oldest advice on the {part} that is still repeated, it tends to be sound.
Do one thing at a time, and finish the {part} before opening the next box.
It may be worth asking in a forum about the {part}, with a photo.
For the {topic} as a whole I'd set a date, tell a friend, and celebrate when it is done.
None of this is set in stone; what counts is that the {part} works for you.
Costs vary from one place to another, so get two offers for the {part}.
Once that is running, the {topic} mostly looks after itself.
""",
    echoes="""
Ah, {one}!
So it's {one}. In that case {other} deserves a second look.
What you write about {one} is common, more than one would believe.
{one} can be a nuisance or a joy, and it depends on {other}.
I'd keep {one} in mind from here on.
""",
    follow_ups="""
Does {one} change anything?
Fair enough. {one}, though?
Give me something on {one}.
You skipped {one} and {other}.
""",
    topics={
        "podcast": "microphone, intro, guests, editing, cover, schedule",
        "camper van": "mattress, wiring, insulation, stove, solar panel, permits",
        "choir": "rehearsal room, soprano line, programme, warm-up, robes, donations",
        "thesis": "introduction, sources, figures, supervisor, deadline, abstract",
        "aquarium": "filter, gravel, shrimp, water test, lamp, algae",
        "allotment": "shed, hedge, rain barrel, potatoes, neighbours, slugs",
        "pottery course": "glaze, kiln, wheel, clay, trimming, exhibition",
        "tax return": "receipts, deductions, deadline, forms, home office, refund",
        "board game night": "rules, snacks, teams, expansion, timer, scoring",
        "website": "domain, newsletter, colours, hosting, shop, feedback",
    },
    slots=_SLOTS,
)

HALVES = {"seen": SEEN, "unseen": UNSEEN}
