"""Two hundred lines of chat about nothing that was ever said: greetings, thanks, small talk, questions of general
knowledge, wishes, in several languages. What recalls something for one of them recalls it for no reason."""

from __future__ import annotations

CHATTER = """
Good morning!
Hi there, how are you doing today?
Thanks, that helps a lot.
Thank you so much, you're the best!
ok
Great, let's do that.
Sounds good to me.
Haha, that's funny.
Good night, talk to you tomorrow.
What's the weather like today?
Can you tell me a joke?
Write a short poem about autumn leaves.
How many millilitres are in a cup?
What is the capital of Australia?
I had pasta for lunch and it was delicious.
I'm so tired today, I barely slept.
Could you explain how photosynthesis works?
Translate "where is the library" into Spanish.
What time is it in Tokyo right now?
Please summarise the plot of Hamlet in three sentences.
How do I boil an egg so that the yolk stays soft?
I just finished a long run and feel amazing.
Give me five ideas for a birthday party theme.
What's 17 percent of 340?
My head hurts a little.
Who won the world cup in 1998?
Can you recommend a good science fiction novel?
I'm bored, entertain me.
What is the difference between affect and effect?
Draft a polite email declining an invitation.
How long does it take to fly from London to New York?
It's raining cats and dogs outside.
What should I cook tonight with chicken and rice?
Is it safe to eat raw cookie dough?
Tell me something interesting about octopuses.
How do vaccines work?
What's a good name for a kitten?
I think I'll go for a walk now.
That was a terrible movie.
Can you help me write a cover letter?
Explain recursion like I'm five.
What are the symptoms of dehydration?
How do I tie a bow tie?
Do you think aliens exist?
I love this song.
What does the word ephemeral mean?
Why is the sky blue?
Compose a haiku about the moon.
How do I remove a wine stain from a carpet?
Which planet has the most moons?
Let me think about it for a while.
Never mind, forget it.
Yes please.
No, not now.
Maybe later.
Could you say that again in simpler words?
What's the best way to learn the guitar?
How much protein is in a hundred grams of tofu?
Convert 250 Fahrenheit to Celsius.
How many bones does an adult human have?
Who painted the Mona Lisa?
I'm making coffee, be right back.
The bus was late again.
What year did the Berlin Wall fall?
Give me a workout plan for beginners.
Can dogs eat grapes?
What is inflation?
Suggest a playlist for studying.
I feel a bit anxious about everything.
How do I unclog a kitchen sink?
What rhymes with orange?
Are there any good podcasts about history?
I really need a vacation.
How do I center a div in CSS?
What's the meaning of life?
Correct the grammar: he go to school yesterday.
What are good questions to ask in a job interview?
Is a tomato a fruit or a vegetable?
How does a microwave heat food?
Tell me a bedtime story about a dragon.
What is the tallest building in the world?
I'm going to bed early tonight.
How do noise cancelling headphones work?
What should I wear to a wedding in summer?
It's freezing in here.
Can you count to ten in Japanese?
How often should I water a cactus?
What's the square root of 1764?
Who wrote One Hundred Years of Solitude?
List the ingredients for pancakes.
I finally cleaned the windows.
How do I stop hiccups?
What is a black hole?
Make this sentence sound more formal: gimme the report.
How many continents are there?
What are some healthy snacks?
Can you play chess?
My phone battery is almost dead.
What happens if you swallow chewing gum?
How do I change a flat tyre?
I can't decide what to watch.
What is the speed of light?
Explain the offside rule.
Is it going to snow this weekend?
Do plants sleep?
What's a synonym for happy?
How do I write a resume without experience?
Which is better, tea or coffee?
Tell me about the French Revolution.
The neighbours are being loud again.
How do I make my own sourdough starter?
What does HTTP stand for?
How tall is Mount Everest?
I'm learning to juggle.
Why do cats purr?
What's the currency of Switzerland?
How do I say good evening in Italian?
Could you proofread a paragraph for me?
What is the golden ratio?
Do I need a visa for Canada?
How do bees make honey?
What's trending in technology?
I dropped my phone but it's fine.
What does RSVP mean?
How many hours of sleep do adults need?
What are the rules of badminton?
I'd like a riddle, please.
What is the boiling point of ethanol?
How can I be more productive?
Who discovered penicillin?
What time does the sun set today?
The train is packed this morning.
Explain compound interest with an example.
How do I fold a fitted sheet?
What's the population of Brazil?
Can you roast me?
What's the difference between a crocodile and an alligator?
How do I get rid of fruit flies?
I'm hungry.
How do I calm down before a speech?
What's a palindrome?
Are bananas berries?
Give me a fun fact.
What do astronauts eat?
How do I clean a cast iron pan?
What's the plural of octopus?
How can I improve my handwriting?
Why do we yawn?
What's the most spoken language in the world?
Which vitamins are fat soluble?
Guten Morgen!
Danke, das war sehr hilfreich.
Wie wird das Wetter morgen?
Erzähl mir einen Witz.
Wie viele Einwohner hat Berlin?
Bonjour, comment ça va ?
Merci beaucoup !
Quelle est la capitale du Pérou ?
Raconte-moi une blague.
Buenos días, ¿qué tal?
¿Cuánto es doce por doce?
Gracias por todo.
こんにちは
ありがとうございます
今日の天気はどうですか？
你好
谢谢你的帮助
给我讲个笑话
Добрый вечер!
Спасибо большое
Какая сегодня погода?
Buongiorno, come stai?
Grazie mille!
Hva er hovedstaden i Finland?
Takk for hjelpen!
How do I sharpen a kitchen knife?
What's the best season to visit Iceland?
Make a packing list for a beach holiday.
How do I keep basil alive indoors?
What's the difference between jam and marmalade?
I just got home.
Write a limerick about a lazy cat.
How does a mortgage work?
What is the Pythagorean theorem?
Suggest a good board game for four people.
Can you explain the stock market?
How many calories are in an avocado?
My back is killing me from sitting all day.
How do I politely end a phone call?
Which countries border Germany?
I'm thinking about learning to swim.
What was the first video game ever made?
How do I remove rust from tools?
What's a good stretch for the lower back?
How are rainbows formed?
That makes sense now.
Let's talk about something else.
What would you do with a million dollars?
How long should I steep green tea?
Can I freeze cooked rice?
""".strip().splitlines()
