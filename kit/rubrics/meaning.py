"""Rules on what a criterion means for the score: its sign, its weight, whom it talks to, what it
needs to be decided.

The wordings are closed lists, tried only where one of their words occurs: a rule that is silent
costs nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median

from ..data.levels import ends_of
from ..records import Criterion, Task
from .same import branch

_HEAD = r"\A\s*(?:(?:the|its|it)\s+)?"
_NOUN = (
    r"(?:response|answer|text|output|reply|assistant|model|summary|e-?mail|essay|story|poem|letter"
    r"|code|function|program|query|script|translation|plan|recipe|advice|explanation|argument"
    r"|article|report|proof|solution|message|document|wording|tone|style|review|speech|description"
    r"|list|conclusion|introduction|post|advert)\s+"
)
_SUBJECT = rf"{_HEAD}(?:{_NOUN})?"
_ANYTHING = rf"{_HEAD}(?:{_NOUN}|(?!if|when|where|never|also|only|it)[a-z]+[^\Ws]\s+)?"
_ANY = r"(?:no|not|zero|neither|few|fewer|at|without|any)\b"  # before a fault: it is not there
_FAULTS = r"""(?:errors?|mistakes?|inaccurac\w+|falsehoods?|typos?|hallucinations?|misinformation
    |contradictions?|insults?|slurs?|profanit\w+|stereotypes?|fallac\w+|nonsense|gibberish
    |plagiarism|lies|clich[eé]s?|filler|fluff|bugs?|loopholes?|(?:sweeping
        |over)\s?generali[sz]ations?
    |(?:swear|missing|misspelled)\s+words|personal\s+attacks?)\b
    (?!\s+(?:to\s+(?:avoid|watch)|handling|messages?|codes?|bars?|rates?|margins?|checking|that
        |which|reports?|tickets?|fix\w*|trackers?
        |people|analysis|and\s+how|from|of|in\s+the\s+(?:prompt|original|draft|code)))"""
_ILL = r"""(?:dangerous|harmful|false|incorrect|inaccurate|wrong|misleading|fabricated|irrelevant
    |unsafe|discriminatory|racist|sexist|derogatory|defamatory|insulting|offensive|abusive|vulgar
    |made-up|non-?existent|unfounded|illegal|untrue|excessive|unnecessary|superfluous|redundant
    |outdated|obsolete|unsupported|unsubstantiated|unproven|exaggerated|inappropriate|ambiguous
    |contradictory|inconsistent|unrealistic|unsolicited|unrelated|invented|nonsensical|confusing
        |vague
    |repetitive|tangential|lengthy|verbose|disorgani[sz]ed|condescending|unspecific
    |non-specific|biased|overly|too
    |erroneous|flawed|faulty|deceptive|insensitive|inflammatory|unethical|unreliable|unverified
    |baseless|unjustified|hateful|obscene|gratuitous|incoherent|illogical|self-contradictory
    |meaningless|pointless|convoluted|stereotypical|sensationalist)\b"""
# What an answer that does it has done wrong, whatever the object.
_SINS = r"""(?:conf(?:uses|lates|ounds)|muddles|muddies|omits|neglects|forgets|overlooks|misses
        |disregards
    |mis(?!s|conceptions|takes\s+(?:are|in)|fits|haps|matches|ters)[a-z]+s|fabricates|falsifies
        |hallucinates|invents|distorts|overstates|understates
    |exaggerates|sensationalis?z?es|downplays|sugarcoats|whitewashes
    |(?:over|under)estimates|over(?:generali[sz]es|simplifies|complicates|whelms|uses|steps|reaches)
    |undermines|undercuts|insults|mocks|taunts|sneers|humiliates|belittles|ridicules|demeans
    |denigrates|disparages|degrades|smears|stereotypes|dehumani[sz]es|discriminates|bullies|harasses
    |patroni[sz]es|slanders|libels|defames|deceives|tricks|manipulates|offends|irritates|embarrasses
    |frightens|scares|scaremongers|intimidates|shames|scolds|lectures|preaches
    |moralis?z?es|alienates|endangers|harms|hurts|jeopardi[sz]es|sabotages|incites|perpetuates
    |spams|panders|trivialis?z?es|plagiari[sz]es|rambles|waffles|digresses|meanders|wanders
    |nitpicks|quibbles|evades|dodges|sidesteps|shirks|obfuscates|clutters|jumbles
    |mangles|botches|bungles|leaks|garbles|crashes|hangs|violates|infringes|disobeys
    |flouts|wastes|worsens|impersonates)"""
_MEND = r"(?:seek|see|call|ask|consult|contact|get|visit)(?:ing)?"
_FOE = (
    r"(?:user|customer|reader|patient|victim|person|author|writer|client|student|people|employee"
    r"|staff|worker|colleague)s?"
)
# Verbs behind which a fault is one that is spoken of, or mended.
_TELLING = r"""(?:corrects|fixes|avoids|warns|explains|identifies|mentions|says|states|notes|points
    |describes|discusses|distinguishes|differentiates|recogni[sz]es|acknowledges|lists|names|asks
    |flags|rejects|refutes|rebuts|debunks|dispels|detects|finds|removes|deletes|addresses|clarifies
    |highlights|advises|recommends|suggests|tells|informs|educates|refers|emphasi[sz]es|stresses
    |does|is|has|was|handles|prevents|reduces|minimi[sz]es|compares|contrasts|raises|throws|spots
    |replaces|excludes|analy[sz]es|evaluates|assesses|checks|measures|covers|considers|criti\w+s
    |discourages|challenges|questions|labels|counters|condemns|shows|concludes|tests|reports
    |validates|verifies|looks|discloses|admits|reveals|exposes|defines|cautions|refuses|declines
    |treats|lets|allows|outlines|quotes|keeps|ignores|cites|includes|thus|this|always|its|his|as
    |rules|screens|filters|skips|cleans|marks|logs|returns|lessens|limits|weighs)\b"""
_MUTED = (  # words behind which a fault is not there, or is another's
    r"(?:no|not|never|zero|neither|few|fewer|at|without|any|free|against|if|when|whether|that|which|how|why|what|from|of|who"
    r"|between|where|rather|instead|emergency)\b"
)
# What nobody wants, at the head of a criterion: with a positive weight it pays.
BAD = re.compile(
    rf"""{_SUBJECT}(?:
    fail(?:s|ed)?\s+to\b
    | (?:is|sounds|seems|feels)\s+(?:(?!{_ANY})\w+\s+)?(?:abrupt|absurd|alarmist|awkward|bad
        |baseless|bigoted|bland|bossy|chaotic|cheesy|childish
    |choppy|clumsy|cluttered|combative|convoluted|crude|curt|cynical|deceptive|defective|deficient
    |demeaning|disjointed|dishonest|dull|erroneous|evasive|far-fetched|faulty|flawed|flippant
        |garbled
    |hateful|haphazard|hurtful|hypocritical|immature|impatient|impractical|imprecise|improper
    |inadequate|incomprehensible|inconsiderate|ineffective|inefficient|inept|inflammatory
        |insensitive
    |insincere|intolerant|intrusive|invalid|irrational|irresponsible|lazy|long-winded|ludicrous
    |malicious|manipulative|meaningless|messy|misguided|mistaken|mocking|monotonous|muddled|nasty
        |naive
    |negligent|obscene|outrageous|overbearing|partisan|passive-aggressive|pedantic|petty|pointless
    |pompous|poor|prejudiced|pretentious|problematic|rambling|reckless|ridiculous|robotic|rushed
    |scornful|self-contradictory|sensationalist|shallow|shoddy|sketchy|sloppy|snarky|spiteful
    |stereotypical|stilted|stupid|superficial|tactless|tasteless|tedious|threatening|tone-deaf|toxic
    |ugly|unacceptable|unbalanced|uncaring|unethical|unfocused|unimaginative|uninformed
        |unintelligible
    |unjust|unjustified|unnatural|unoriginal|unpleasant|unreasonable|unreliable|unsuitable|useless
    |violent|weak|worthless)\b | spoils\s
    | (?:swallows|hides|suppresses)\s+(?:\w+\s+)?(?:errors?|exceptions?|warnings?)\b
    | (?:incorrectly|wrongly|falsely|inaccurately|mistakenly|erroneously|inappropriately|silently
        |needlessly|unnecessarily|unfairly|carelessly|recklessly|irresponsibly|misleadingly
        |excessively|dismissively|rudely|improperly|unjustly|arbitrarily|prematurely)\s+\w+s\b
    | (?:{_SINS}|makes\s+up|talks\s+(?:down\s+to|over|past)
        |(?:contradicts|repeats)\s+(?:itself|its\s+own|the\s+same)
        |(?:strays|deviates|drifts)\s+(?:off|from)
        |falls\s+(?:\w+\s+)?short\s+of|is\s+missing|lacks\s+(?:an?|any|the)
        |loses\s+(?:track|sight|(?:the|its)\s+(?:thread|focus|order|meaning|point))
        |breaks\s+(?:on|when|if|for|the\s+(?:rules?|build|law|format|limit))
        |jumps\s+to\s+conclusions?|glosses\s+over|dismisses\s+(?:the|her|his|their|any|\w+['’]s?)
        |minimi[sz]es\s+(?:the\s+)?(?:\w+\s+)?(?:risks?|severity|seriousness|dangers?|symptoms?
            |concerns?)
        |discourages\s+(?:\S+\s+){{1,3}}?from\s+{_MEND}
        |(?:blames|attacks|accuses|threatens|harasses|manipulates|pressures)\s+(?:the\s+)?{_FOE})\b
    | (?:mixes|leaves)\s+(?:\S+\s+){{0,5}}?(?:up|out)\b | gets\s+[^.]{{1,60}}\swrong\b
    | \w+s\s[^.]*\b(?:in|into|at|to|for|on|by|with)\s+the\s+wrong\s+\w+\s*\.?\s*\Z
    | (?!mentions|says|states|explains|notes|warns|asks|points)\w+s\s[^.]*\b(?:by\s+mistake
        |at\s+(?:great|unnecessary)\s+length|for\s+no\s+reason)\s*\Z
    | ends\s+(?:abruptly|mid-sentence|in\s+the\s+middle) | hard-?codes\s
    | (?:encourages|promotes|glorifies|advocates|condones|supports|normali[sz]es
        |excuses)\s+(?!against)
        (?:\w+\s+)?(?:violence|self-?harm|hatred?|suicide|racism|sexism|discrimination|terrorism
        |cheating|bullying|drug\s+abuse|self-medication)\b
    | (?:suggests|recommends|advises|encourages)\s+(?:ignoring|disregarding|violating
        |breaking\s+the\s+law)\b
    | (?:has|contains|includes|gives|provides|offers|presents|shows)\s+no\s+(?:\w+\s+)?(?:evidence
        |structure|reasons?|thesis|warnings?|justification|basis|empathy|support)\b
    | (?:writes|provides|gives|returns|produces|presents)\s[^.]*\bthat\s+(?:does|do|will)\s+not\s+
        (?:run|compile|work|apply|follow|parse)\b
    | leaves\s[^.]*\b(?:unanswered|unexplained|undefined|unresolved|unaddressed)\b
    | skips\s[^.]*\bwithout\b | leaves\s+(?:the\s+)?{_FOE}\s+(?:confused|unsure|without|guessing)
    | calls\s[^.]*\b(?:idiots?|stupid|fools?|incompetent|liars?)\b
    | (?:goes|runs)\s+(?:far|well|way)\s+(?:beyond|over)\b
    | (?:exceeds|(?:goes|runs|is)\s+(?:\w+\s+)?(?:beyond|over|above))\s+
        (?:the\s+)?(?:\w+\s+)?(?:budget|limits?|length|maximum)\b
    | is\s+(?:\w+\s+)?(?:longer|shorter|higher|lower)\s+than\s+(?:the\s+)?
        (?:allowed|permitted|requested|required|stated|prescribed|limit)\b
    | ignores\s+(?!.*\b(?:irrelevant|off-topic|hidden|injected|embedded|case|whitespace|headers?
        |blanks?|comments?|lines?|rows?|values?|punctuation|duplicates?|order)\b)
    | (?:does\s+not|doesn['’]t)\s+(?:
        (?:answer|address|follow|respect|comply\s+with|adhere\s+to|meet)\s+(?:the|any|all|what)
        | acknowledge|clarify|specify|consider|emphasi[sz]e|inquire|justify|work|compile
        | say\s+(?:what|when|who|how|why)|ask\s+(?:about|clarifying|follow-up)
        | (?:mention|explain|include|discuss|describe|state|note)\s+(?:why|the\s+(?:\w+\s+)?(?:need
            |importance|reasons?|risks?|dangers?|side\s+effects|limitations|red\s+flags
            |warning\s+signs))
        | (?:recommend|suggest|advise)\s+(?:\w+\s+)?(?:consulting|seeing|speaking|follow)
        | take\s[^.]{{1,60}}\sinto\s+(?:account|consideration)|account\s+for|make\s+(?:sense
        |clear))\b
    | (?:suggests|recommends|proposes|promotes|advises|uses|gives|includes|adds|states|cites|quotes
        |presents|offers|relies\s+on)\s+(?:\w+\s+){{1,3}}?(?:that|which)\s+(?:is|are|was|were|sounds?
        |seems?|(?:turns?|turned)\s+out\s+to\s+be|proves?\s+to\s+be)\s+(?:(?!rarely|hardly|barely)\w+ly\s+)?(?:{_ILL}
        |made\s+up)
    | (?:promises|cites|quotes|uses|references|calls|recommends|refers\s+to|links\s+to|adds|makes
        |gives|includes|introduces|states|lists|names|sends\s+\w+|relies\s+on)\s+(?!nothing
        |no\b)[^.]{{1,50}}?\b(?:that|which)\s+(?:
        (?:does|do|did)\s+not\s+exist|(?:\S+\s+){{0,3}}?cannot\s+(?:be\s+)?(?:kept|keep|hold|met)
        |(?:no\s+longer|never)\s+\w+|(?:closed|ended|expired)\s
        |(?:was|were|is|are|has\s+been|have\s+been)\s+(?:out\s+of\s+date|closed|expired|repealed
        |withdrawn|overruled|retracted
            |not\s+(?:in|asked|needed|requested|supported|mentioned|relevant|true))
        |no(?:body|\s+one)\s|(?:the\s+)?(?:prompt|user|source|text)\s+(?:does|did)\s+not\s)
    | (?:presents|states|treats|sells)\s[^.]{{1,60}}(?<!\bnot)\sas\s+(?:an?\s+)?(?:facts?
        |certain\w*|proven)\b
    | \w+s\s[^.]*\b(?:but|and|yet)\s+(?:fails\s+to|omits|neglects|ignores)\b
    | (?:states|claims|says|lists|gives|recommends|uses|suggests|advises|implies)\s[^.]*,\s+which\s+
        (?:is|are|was|were)\s+(?:\w+ly\s+)?{_ILL}
    | (?:gives|provides|recommends|claims|suggests|states|offers|makes|advises)\s
        (?:(?!not|never|against|avoid|should|must|danger)\S+\s)*?without\s+(?:acknowledging
        |clarifying
        |specifying|considering|hedging|checking|verifying)\b
    | (?:presents|gives|shows|covers)\s+(?:only|just)\s+one\s+side\b
    | (?:asks|requests|demands|uses|adds|makes|gives|states)\b[^.]*\s(?:for\s+no\s+reason|without\s+
        (?:any\s+)?(?:evidence|justification|basis|reason|consent|permission|foundation))\s*\Z
    | (?:encourages|tells|advises|urges|instructs|asks)\s+(?:\S+\s+){{1,3}}?to\s+
        (?:double\s+the\s+dose|exceed\s|lie\b|cheat\b|(?:delay|postpone|avoid)\s+{_MEND})
    | (?:gives?|offers?|provides?|states?|recommends?|suggests?|uses|spreads|asks|adds|cites|makes
        |returns|prints|computes|calculates|names|picks|chooses|draws|reaches|selects|applies
        |assigns
        |reports|produces
        |presents|shows)\s+(?:(?!{_ANY})\w+\s+)?{_ILL}
    | (?!{_TELLING})[a-z]+s\s+(?:(?!{_MUTED})[\w'’-]+\s+){{0,5}}?(?:{_ILL}|{_FAULTS})
    | (?:suggests|recommends|advises|prescribes|proposes|encourages|tells|instructs|starts)\s
        (?:(?!not\b|never\b|avoid|against\b|stress)[^.;\s]+\s)*?without\s+(?:first\s+|even\s+
        |any\s+)?(?:talking|speaking|consult\w+|asking|checking|seeing|testing|verifying|warning
        |supervision|advice|a\s+(?:doctor|lawyer|prescription|test))\b
    | (?:confuses|mixes\s+up)\s | copies\s[^.]*\bword\s+for\s+word\b
    ) | \s*(?:too|overly|excessively)\s+\w+
    | \s*there\s+(?:is|are)\s+(?:(?!{_ANY})\w+\s+){{1,2}}?{_FAULTS}
    | \s*(?:(?:the|its|some|many|several|most|all|half|of|important|key|required|needed)\s+)+
        (?:(?!that|which|who|not|no\b)[\w'’-]+\s+){{1,4}}?(?:is|are)\s+(?:\w+ly\s+)?
        (?:missing|left\s+out|omitted|wrong|misspelled|broken|dead|{_ILL})(?=\W*(?:\Z|and\b|or\b|,))
    | \s*no\s+(?:\w+\s+){{0,2}}?(?:sources?|evidence|reasons?|explanations?|examples?|warnings?
        |units?|steps?|answers?|figures)\s+(?:is|are)\s+(?:given|provided|cited|named
        |included|mentioned|shown)\b
    | {_ANYTHING}(?:
    (?:contains?|has|have|includes?|makes|introduces|uses|resorts\s+to|re(?:lies|sts)\s+on
        |is\s+(?:full\s+of|riddled\s+with|littered\s+with|based\s+on))\s+
        (?:(?!{_ANY})\w+\s+){{0,2}}?(?:{_FAULTS}|{_ILL})
    | (?:is|are|sounds|seems|reads\s+as|feels|comes\s+across\s+as)\s+(?:
        (?:too|overly|needlessly|unnecessarily|excessively)\s+\w+
        | not\s+(?:clear|coherent|believable|readable|understandable|convincing|polite|helpful
            |accurate|correct|relevant|credible|logical|professional|easy)\b
        | (?:(?!{_ANY})\w+\s+)?(?:rude|cold|harsh|hostile|incorrect|inaccurate|misleading|offensive
        |incoherent|insulting|dismissive|condescending|repetitive|off[-\s]topic|factually\s+wrong
        |vague|confusing|illogical|unhelpful|unreadable|ungrammatical|impolite|disrespectful
        |unprofessional|unfriendly|sarcastic|discriminatory|plagiari[sz]ed|racist|sexist
        |generic|inconsistent|disorgani[sz]ed|implausible|unconvincing|judg[e]?mental
        |patroni[sz]ing|verbose|wordy|contradictory|unclear|incomplete|illegible|irrelevant|boring
        |inappropriate|one-sided|biased|preachy|pushy|arrogant|aggressive|cruel|careless|unfair
        |unkind
        |unsafe|unstructured|unfinished|unrealistic|untrue|truncated|cut\s+off)\b)
    )""",
    re.I | re.X,
)
_WELL = r"""(?:correctly|accurately|precisely|clearly|politely|properly|faithfully|concisely|vividly
    |convincingly|thoroughly|logically|coherently|appropriately|safely|respectfully|efficiently
        |fairly
    |transparently|honestly|truthfully|thoughtfully|gracefully|carefully|responsibly|effectively
    |successfully|fluently|warmly|kindly|sincerely|tactfully|elegantly|neatly|consistently
        |objectively
    |comprehensively|smoothly|patiently|impartially|sensitively|professionally|well)"""
_FINE = r"""(?:accurate|correct|helpful|clear|relevant|useful|reliable|proper|complete|valid
        |credible
    |trustworthy|reputable|balanced|coherent|logical|truthful|constructive|actionable|practical
    |easy|sound|convincing|persuasive|strong|compelling|vivid|well-\w+|right|evidence-based
    |thoughtful|respectful|empathetic|meaningful|informative|insightful|sensible|working|reasonable
    |realistic|fair|nuanced|comprehensive|thorough|kind|polite)\b"""
# What is only ever wanted: with a negative weight it costs.
GOOD = re.compile(
    rf"""{_SUBJECT}(?:(?:clearly|explicitly|strongly|briefly|actively|specifically|directly
        |promptly)\s+)?(?:
    (?:{_WELL}|explicitly\s+and\s+correctly)\s+\w+s\b | \w+s\s+{_WELL}\b
    | (?:acknowledges|recogni[sz]es|identifies|distinguishes|tailors|warns|clarifies|stresses
        |prioriti[sz]es|empathi[sz]es|inquires|justifies|rebuts|solves|resolves|evokes|reassures
        |substantiates|corroborates|debunks|demystifies|illustrates|congratulates|comforts|motivates
        |engages|inspires|protects|safeguards|anticipates|double-checks|cross-checks
        |synthesi[sz]es)\b
    | (?:makes\s+(?:it\s+)?clear|makes\s+sure|takes\s+care|spells\s+out|sums\s+up|ensures
        |reminds|(?:draws|pays)\s+attention)\b
    | (?:tells|informs|advises|teaches|shows|asks)\s+(?:the\s+)?(?:{_FOE}|him|her|them)\s+(?:about
        |how|when|where|which|what|whether|why)\b
    | (?:advises|recommends|suggests|encourages|urges|proposes)\s+(?:\w+ly\s+)?(?:comparing|reading
        |documenting|recording|reviewing|monitoring|planning|budgeting|practi[sc]ing|verifying
        |building|wearing|insuring|writing\s+down|photographing|testing|backing\s+up|saving
        |keeping\s+(?:\w+\s+){{0,2}}?(?:cop(?:y|ies)|receipts?|records?|notes|track|diary|log
        |evidence))\b
    | weighs\s | balances\s | wishes\s[^.]*\b(?:well|luck|success|best|recovery)\b
    | corrects\s[^.]*\b(?:errors?|mistakes?|misconceptions?|myths?|bugs?|assumptions?|claims?)\b
    | (?:makes|keeps)\s[^.]*\s(?:interesting|engaging|accessible|clear|memorable|relatable|simple
        |readable|understandable|easy\s+to\s+\w+|safe|exciting)\b
    | \w+s\s+(?:\w+\s+){{0,3}}?the\s+(?:correct|right|proper|accurate)\s+\w+\b
    | (?:all|every|each)\s+(?:of\s+)?(?:the\s+|its\s+)?(?:(?!that|which)[\w'’-]+\s+){{1,3}}?(?:is
        |are)\s+(?:\w+ly\s+)?(?:{_WELL}|{_FINE}|explained|supported|backed|justified|cited|sourced
        |labell?ed)
    | {_FINE}(?:\s*(?:,|and|,\s+and)\s+\w+)*\W*\Z | (?:compiles|runs\s+without)\b
    | (?:is|are)\s+right\W*\Z
    | points\s+out\b | takes\s+(?:full\s+)?responsibility\b | takes\s[^.]+\sinto\s+account\b
    | asks\s+(?:about|clarifying|follow-up)\b
    | (?:shows|expresses|demonstrates|conveys|displays|offers)\s+(?:\w+\s+)?
        (?:empathy|sympathy|compassion|understanding|respect|concern|support)\b
    | (?:urges|advises|tells|encourages|directs|instructs|recommends|suggests|reminds)\s
        (?:(?!not|no\b|against|delay|that)\S+\s){{0,9}}?(?:{_MEND}|by|with
        |to)\s(?:\S+\s){{0,3}}?(?:doctors?
        |physicians?|pharmacists?|specialists?|therapists?|dentists?|nurses?|lawyers?|experts?
        |professionals?|ambulance|emergency\s+services|(?:health\s?care|medical)\s+providers?)\b
    | explains\s+(?:why|how)\b | \w+s\s[^.]*\bin\s+(?:plain|simple|clear)\s+\w+\s*\.?\Z
    | (?:supports|backs|illustrates|justifies|underpins)\s[^.]*\bwith\s+(?:\w+\s+)?(?:examples?
        |evidence
        |reasons?|facts?|data|quot\w+|figures?|sources?)\b
    | takes\s[^.]+\sseriously\b | asks\s+(?:an?\s+)?(?:clarifying|follow-up)\b
    | encourages\s+(?:\S+\s+){{1,3}}?to\s+(?:seek|consult|see|ask|check|have|talk|speak|rest
        |report)\b
    | (?:validates|sanitizes|sanitises)\s
    | (?:includes|has|adds|contains)\s+(?:\w+\s+)?(?:error\s+handling|type\s+hints|docstrings?
        |unit\s+tests)\b
    | (?:cites|gives|provides|names|includes)\s+
        (?:at\s+least\s+)?(?:(?!no\b|with)\S+\s+){{0,2}}?(?:sources|evidence
        |citations)\b
    | (?:thanks|greets|apologi[sz]es)\b(?!\s+(?:for\s+asking|\w*ly\b|too\b|more\b))
    | answers\s+the\s+(?:user['’]s\s+)?question\b(?!\s+in\b)
    | (?:is|are|remains?|stays?|sounds?)\s+(?:(?!not|poorly|badly|hardly|barely)\w+\s+)?(?:correct
        |accurate|polite|courteous
        |respectful|civil|clear|readable|coherent|factual|truthful|honest|helpful|faithful|complete
        |concise|balanced|friendly|believable|plausible|idiomatic|convincing|persuasive|professional
        |empathetic|supportive|logical|consistent|efficient|understandable|grammatical|on\s+topic
        |well[-\s]\w+|accessible|articulate|attentive|calm|candid|charming|cohesive|comforting
        |compassionate
    |comprehensive|comprehensible|considerate|constructive|creative|credible|diplomatic|eloquent
    |encouraging|engaging|entertaining|fair|fluent|focused|genuine|imaginative|impartial|informative
    |insightful|inspiring|interesting|kind|legible|lively|lucid|memorable|motivating|neat|nuanced
    |objective|orderly|organi[sz]ed|original|patient|pleasant|polished|practical|precise|reasonable
    |reassuring|relevant|reliable|robust|sensible|sensitive|sincere|structured|succinct|tactful
    |thorough|thoughtful|tidy|tolerant|transparent|trustworthy|unbiased|useful|valid|valuable|warm
    |welcoming|witty|wise|free\s+(?:of|from)|easy\s+(?:\w+\s+){{0,4}}?to\s+\w+)\b
    | follows\s+(?:all\s+)?(?:the\s+)?(?:instructions?|format|prompt)\b
        (?!\s+(?:in|inside|of|from|hidden|embedded)\b)
    | (?:respects|observes|adheres\s+to|complies\s+with|conforms\s+to|meets|satisfies|follows
        |(?:keeps|sticks)\s+(?:\S+\s+){{0,3}}?(?:to|within|below|under))\s+(?:[\w'’-]+\s+){{0,4}}?
        (?:limits?|length|format|budget|deadline|word\s+count|constraints?|requirements?)\b
    | (?:preserves|retains|conveys|keeps|maintains)\s+(?:the|its)\s+(?:\w+\s+)?
        (?:meaning|sense|facts|order|tone|style|structure)\b
    | (?:passes|handles)\s+(?:all|every|each|the|both|empty|edge|large|missing|invalid)\b
    | works\s+(?:for|with|on|when|correctly)\b
    | helps\s+(?:[\w'’-]+\s+){{1,4}}?(?:to\s+)?(?:understand|decide|learn|cope|improve|choose)\b
    | (?:gives?|offers?|provides?|includes?|presents?|uses|contains?|cites|quotes|has|makes|draws
        |names|chooses|selects|reaches)\s+(?:an?\s+|the\s+|its\s+)?(?:\w+\s+and\s+)?{_FINE}
    | (?:includes|mentions|covers|lists|names|gives|states|addresses|answers|contains)\s+
        (?:all|every|each)\s+(?:of\s+)?(?:the\s+)?(?:\w+\s+)?(?:required|requested|necessary
        |relevant|important|key|needed|information|facts?|points?|questions?|parts?|steps?
        |requirements?)\b
    | (?:supports|backs|justifies)\s+(?:its|each|every|all|the)\s+(?:\w+\s+)?
        (?:claims?|arguments?|answer|position|points?|steps?)\b
    | \w+s\s[^.]*\s(?:{_WELL}|fully|in\s+(?:chronological|logical)\s+order)\s*\Z
    | \w+s\s[^.]*\b(?:in\s+the\s+(?:right|correct|proper|requested|required)\s+\w+
        |as\s+(?:requested|required|asked|instructed|the\s+\w+\s+(?:asks|requires|wants)))\s*\Z
    ) | \s*(?:the|its)\s+(?:\w+\s+){{1,2}}?(?:is|are)\s+(?:\w+\s+)?(?:believable|plausible
        |convincing|vivid|coherent
        |easy\s+to\s+\w+|well[-\s]\w+|clear|correct|accurate)\b""",
    re.I | re.X,
)
# A fault that is not there, or what "should" be: good, whatever the words after it.
SPARED = re.compile(
    rf"""{_SUBJECT}(?:
    (?:avoids|refrains\s+from)\b(?!\s+(?:answering|the\s+(?:question|topic)))
    | (?:should|must|needs\s+to|ought\s+to)\b
    | (?:stays|keeps|remains)\s+within\b | is\s+free\s+(?:of|from)\b
    | (?:contains?|has|have|includes?|makes|introduces|uses)\s+(?:no|zero|neither)\s+
        (?:\w+\s+){{0,2}}?(?:{_FAULTS}|{_ILL})
    | \w+s\s[^.]*\b(?:without|with\s+no)\s+(?:any\s+)?(?:\w+\s+)?{_FAULTS}
    | free\s+(?:of|from)\b | (?:there\s+(?:is|are)\s+)?no\s+(?:\w+\s+){{0,2}}?{_FAULTS}
    | (?:no|none|nothing)\s+(?:[\w'’]+\s+){{0,5}}?(?:is|are)\s+(?:\w+ly\s+)?
        (?:{_ILL}|missing|left\s+out|omitted|misspelled|forgotten|misspelt)
    | without\s+(?:any\s+)?(?:\w+\s+){{0,2}}?{_FAULTS}
    )""",
    re.I | re.X,
)
# A verb that is denied: what stands without the denial tells what it is.
DENIED = re.compile(
    rf"({_SUBJECT})(?:(?:does\s+not|doesn['’]t|do\s+not)\s+(?:ever\s+)?(\w+)|never\s+(\w+s)"
    r"|(is|are)(?:\s+(?:not|never)|n['’]t))\b",
    re.I,
)
# A turn that takes the head back: "Gives accurate advice but ...", "Clearly states a false date".
TURN = re.compile(
    rf"""\b(?:but|although|however|unless|except|only|overly|too|unnecessar\w+|without|despite
    |instead|rather|fails?|not|while|even|unlike|delay\w*|details?|length|longer|than|confus\w*
        |irrelevan\w*
    |when\s+the\s+user|assum\w+|justification|what\s+to\s+expect|bomb|weapon|hack)\b | \b{_ILL}""",
    re.I | re.X,
)
INJECTED = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override|bypass|set\s+aside|pay\s+no\s+attention\s+to)\b[^.]{0,30}
        \b(?:instructions?|rubrics?|criteri\w+|guidelines?|rules?|checklist
        |(?:items?|points?|entries|requirements?)\s+(?:on|in|of|above|below))\b
    | \A\W*(?:please\s+|just\s+|now\s+)?(?:output|return|give|assign|award|mark|score|grade|rate
        |accept
        |approve|skip|pass|declare|consider|report)\b[^.]{0,40}\b
        (?:met|satisfied|fulfilled|verdict|evaluation|grading|10/10|100/100|pass(?:ed|ing)?
        |full\s+(?:marks|credit)|(?:highest|maximum|top|best|perfect)\s+(?:\w+\s+)?(?:score
        |grade)s?)\b
    | \A\W*(?:\#{1,}\s*)?(?:dear\s+|new\s+|to\s+(?:the|all|whoever)\s+)?(?:instructions?|system
        |(?:\w+\s+)?(?:graders?|judges?|evaluators?|reviewers?|raters?|scorers?))(?:\s+(?:override
        |instructions?|prompt|notice|note|message|model))?\s*[:,]
    | \A\W*attention\b[^.]{0,40}:
    | \bto\s+who(?:m|m?ever)\s+(?:it\s+may\s+concern|(?:\w+\s+)?(?:scores?|grades?|judges?|rates?
        |marks?|evaluates?))\b[^.]*\b(?:full|points?|met|pass\w*|accept\w*|marks?|score)\b
    | \A\W*(?:as|since\s+you\s+are)\s+(?:the|an?)\s+(?:\w+\s+)?(?:grader|judge|evaluator|rater)\b
    | \b(?:you\s+are|acting\s+as)\s+(?:the|an?|our)\s+(?:\w+\s+)?(?:grader|judge|evaluator|rater)\b
    | \b(?:this|the)\s+(?:criterion|item|test|check|requirement)\s+(?:\w+\s+)?(?:is\s+always
        |counts?\s+as|passes|(?:is|was|has\s+been)\s+(?:already\s+)?(?:passed|met|true|satisfied))\b
    | \b(?:answer|say|reply|respond|output|print|write)\s+(?:with\s+)?["'“]?(?:yes|met|pass|true)\b
        [^.]{0,30}\b(?:nothing\s+else|only|always|regardless|without)\b
    | \b(?:regardless|no\s+matter|whatever)\b[^.]{0,60}\b
        (?:verdict|score|grade|rating|criterion|criteria)\b[^.]{0,30}\b(?:met|pass\w*|full|highest
        |\d+)
    | \b(?:you\s+are\s+now|act\s+as|pretend\s+(?:to\s+be|that))\b[^.]{0,40}\b
        (?:grader|judge|evaluator|mode|lenient|generous)\b
    | \b(?:score|rate|grade|mark)\s+(?:it\s+|(?:(?:the|this|every|each|any)\s+)?(?:\w+\s+)?)?
        (?:(?:as|with|at)\s+)?(?:10/10|100/100|5/5|100\s?%)
    | \b(?:mark|rate|grade|score|judge|count|treat)\b[^.]{0,40}\bas\s+
        (?:met|passed|satisfied|fulfilled|perfect)\b
    | \b(?:for|to)\s+(?:the|any)\s+(?:AI|LLM|model|judge|grader)\s+(?:scoring|grading|judging
        |rating)\b
    | \b(?:give|award|assign|grant|output|return|choose|select|pick)\b[^.]{0,40}\b
        (?:full|maximum|top|highest|perfect|passing)\s+
        (?:marks?|scores?|points?|credit|ratings?|grades?)\b(?!\s+(?:if|when|for)\b)
    | \b(?:response|answer|submission|candidate|text|essay|code)\s+
        (?:deserves|merits|earns|receives|gets|should\s+(?:get|receive|earn))\s+(?:the\s+|an?\s+)?(?:full|maximum|top|highest|best
        |perfect)\s+(?:marks?|scores?|points?|credit|ratings?|grades?)\b
    | \A\W*(?:please\s+)?(?:forget|disregard|ignore)\s+(?:all\s+|everything\s+)?
        (?:that\s+|what\s+)?you\s
    | \balways\s+(?:answer|say|reply|output|return|choose|mark|vote)\b[^.]{0,20}\b
        (?:yes|met|true|pass|one|1|10)\b
    | \b(?:met|pass|yes)\b[^.]{0,30}\b(?:regardless\s+of|no\s+matter|whatever)\b
    | \bignore\s+(?:the\s+)?(?:essay|answer|response|text|reply|submission|content|candidate)\b
    | \b(?:give|award|assign|grant)\s+(?:it\s+|this\s+)?(?:the\s+)?(?:maximum|full|highest
        |top)\s*[.!]*\Z
    | <\|im_(?:start|end)\|> | \[/?INST\] | <</?SYS>>
    | \A\s*assistant\s*:
    | "verdict"\s*: | \bverdict\s*:\s*(?:met|yes|pass|true)\b
    | ["'](?:met|pass|passed|score)["']\s*:\s*(?:true|["']?(?:met|yes|pass)|10?\b)
    | </?(?:criterion|criteria|rubric|verdict|system|instructions?)> | \[\[?\s*end\s+of\s+\w+\s*\]
    | \bregardless\b[^.]{0,60}\b(?:return|say|answer|output|reply|vote)\s+(?:true|yes|met|pass)\b
    | \b(?:output|return|answer|reply|respond|vote|choose)\s+(?:(?:only|with|as|the\s+word)\s+){0,3}
        ["'“]?(?:met|satisfied)\b
    | \b(?:is|are|counts?\s+as)\s+(?:always\s+|already\s+)?(?:met|satisfied|fulfilled)\s+
        (?:by\s+default|automatically)
    | \b(?:do\s+not|don't|never)\s+(?:check|verify|judge|grade|evaluate)(?:\s+(?:it|this)\b
        |\s*[;,.])
    | \bnew\s+instructions?\s*:
    | \b(?:every|all|each)\b[^.]{0,20}\bcriteri\w+\s+(?:is|are)\s+(?:satisfied|met|fulfilled)\b
    | \bnote\s+to\s+(?:the\s+)?(?:\w+\s+)?(?:judge|grader|evaluator)\b
    | \bset\s+(?:the\s+)?(?:verdict|score|grade|rating)\s+to\b
    | \b(?:just|simply|you\s+must)\s+(?:answer|say|output|reply|return|vote)\b
        [^.]{0,12}\b(?:yes|met|true|pass)\b
    | \bif\s+you\s+are\s+(?:an?\s+)?(?:AI|LLM|language\s+model|judge|grader|evaluator)\b
    | \bignor(?:iere?n?|ez|er|a|e)\b[^.]{0,40}\b
        (?:Anweisung\w*|Vorgaben|Regeln|instrucciones|istruzioni|consignes)\b
    """,
    re.I | re.X,
)
SPEAKS = re.compile(  # of an order that another text gives
    r"\b(?:(?:that|which)\s+(?:tells?|asks?|instructs?|orders?|tries)|telling|asking|attempts?)\s"
    r"(?:\S+\s){0,4}\Z",
    re.I,
)
SPOKEN = re.compile(r"""(?<!\w)(?:'[^'"<>:\[{]{12,}'|"[^"<>:\[{]{12,}"|“[^”<>:\[{]{12,}”)(?!\w)""")
_ONES = (
    "user reader recipient customer client audience patient listener viewer student teacher child "
    "guest candidate recruiter employer employee manager boss company shop team author writer "
    "narrator developer programmer engineer translator expert doctor nurse mother father parent "
    "friend family couple landlord tenant cook chef gardener traveller visitor buyer seller voter "
    "member player officer investor examiner professor donor subscriber juror "
    "committee interviewer owner man woman mayor council minister "
    "bank insurer neighbour neighbor colleague class person host "
    "applicant spouse sister brother son daughter grandmother grandfather pupil learner follower "
    "fan crowd bride groom newcomer beginner novice tourist passenger driver coach editor critic "
    "scientist pharmacist therapist volunteer citizen worker roommate stranger caller tester"
).split()
_ONE = rf"(?:{'|'.join(_ONES)})"
_PEOPLE = (
    r"(?:(?:all|most|many|some|the|any|every|each|both|my|your|his|her|their|\d+|two|three|four"
    rf"|five|six|seven|eight|nine|ten|average)\s+){{0,3}}(?:{_ONE}s?|people|children)"
)
_STATE = (  # what goes on in somebody
    r"(?:excited|happy|happier|moved|satisfied|convinced|persuaded|impressed|amused|pleased|touched"
    r"|grateful|reassured|comforted|consoled|motivated|inspired|relieved|confident|curious|proud"
    r"|hopeful|calm|relaxed|bored|annoyed|delighted|surprised|thrilled|encouraged|empowered|eager"
    r"|tempted|fascinated|intrigued|captivated|entertained|enlightened|frustrated|sad|angry|hungry)"
)
UNVERIFIABLE = re.compile(
    rf"""
    \A{_PEOPLE}\s+(?:will|would|(?:is|are)\s+going\s+to)\s
    | \A{_PEOPLE}\s+(?:\w+ly\s+)?(?:laugh|cry|cries|smile|feel|enjoy|like|love|remember
        |become|stay|trust|regret|understand|believe|know|ha(?:s|ve)\s+fun)e?s?\b
    | \A{_PEOPLE}['’]s?\s[^.]*\bwill\b
    | \A(?:(?:after|upon|when|while|on)\s[^,.]{{1,40}},\s+)?{_PEOPLE}\s+(?:is|are|feels?|becomes?
        |gets?|grows?|remains?|ends\s+up)\s+(?:left\s+)?(?:(?:\w+ly|so|more|very|truly)\s+)?(?:{_STATE}
        |invited|hired|accepted|promoted|admitted)\b(?!\s+(?:that|about|of)\b)
    | \A{_PEOPLE}\s[^.]*\b(?:(?:because\s+of|thanks\s+to|as\s+a\s+result\s+of)\s+(?:reading\s+)?
        (?:the|this)\s+(?:{_NOUN}|\w+\W*\Z)|for\s+(?:days|weeks|months|years)\s+to\s+come
        |in\s+the\s+long\s+run|from\s+(?:now|then)\s+on|the\s+next\s+(?:day|morning|week|time))
    | \A{_PEOPLE}\s+(?:has|have|had)\s+(?:\w+\s+){{1,3}}?(?:experience|degree|training)\b
    | \A(?:the\s+)?\w+\s+will\b[^.]*\b(?:because\s+of|thanks\s+to|after)\s+(?:reading\s+)?
        (?:this|the)\s+(?:letter|answer|response|text|email|post)\b
    | \A(?:the\s+)?(?:{_ONE}|assistant|model)\s+(?:\w+ly\s+)?(?:tested|tried|checked|verified
        |visited|studied|researched|measured|consulted
        |weighed|considered|looked\s+up|searched|googled|thought|read|knew|understood|meant)\b
    | \A(?:the\s+)?(?:\w+\s+)?{_PEOPLE}\s+(?:is|are)\s+
        (?:moved|satisfied|convinced|impressed|happy|amused|pleased|touched|grateful|reassured)\b
    | \b(?:was|were|is)\s+(?:written|composed|created|produced|generated|drafted|made
        |translated)\s+(?:
        (?:in|within)\s+(?:less|under|fewer|\d+|\w+\s+(?:minutes|seconds|hours))
        | without\s+(?:help|looking|(?:using\s+)?(?:a|any|the)\s+(?:tool|model|source|internet
        |dictionary))
        | by\s+(?:a\s+human|hand|an?\s+AI|(?:an?|the)\s+(?:\w+\s+)?(?:expert|professional|native
            |experienced|qualified|real)\b) )
    | \A(?:the\s+)?(?:reader|audience|viewer|listener|recipient|customer|client|landlord|recruiter
        |patient|user|student|buyer|seller|guest|\w+\s+of\s+the\s+\w+)s?(?:['’]s?\s[^.]*)?\s(?:
        (?:cannot|can['’]?t|can\s+not)\s+(?:put|stop|help|wait)
        | (?:learns|recovers|heals|buys|subscribes|orders|pays|returns|replies|agrees|forgives|calms
            |changes|improves|goes|gets|comes|succeeds)\b(?:\s[^.]*)?\b(?:again|away|back|after|from
            |afterwards|better|well|soon|his|her|their|within)\b)
    | \A(?:the\s+)?[^.,]{1, 60}\s(?:again\s+)?(?:afterwards|after\s+(?:reading|receiving|using
        |following)\s+(?:it|this|the\s+\w+))\s*\.?\s*\Z
    | \b(?:does|will|do)\s+not\s+feel\b
    | \bmakes?\s+(?:{_PEOPLE}|(?:every(?:one|body)|people)\s+in\s+\w+\s+\w+|(?:\w+\s+){{1,2}})\s*
        (?:buy|laugh|cry|click|subscribe|weep)\b
    | \A(?:nobody|no\s+one)\s+(?:gets|is|feels|will)\b
    | \b(?:changes|wins|moves|touches)\s+the\s+(?:mind|heart|hearts|minds)\s+of\b
    | \b(?:author|writer|model|assistant)\s+(?:spent|took)\s+(?:\w+\s+){{0,2}}?
        (?:time|hours|effort)\b
    | \b(?:author|writer|model|assistant)\s+(?:
        (?:really|truly|honestly|sincerely|genuinely|actually)\s+)?
        (?:believe[sd]?|thinks?|thought|intend(?:s|ed)|enjoy
            (?:s|ed)|cares?|knows?|tried|feels?|felt)\b
    | \A(?:the\s+)?(?:{_ONE})\s+(?:has\s+|had\s+|was\s+|is\s+)?
        (?:really|truly|honestly|sincerely|genuinely|actually|personally)\s+\w+
    | \A(?:the\s+)?(?:{_ONE}|model|assistant)\s[^.]*\s(?:before|while)\s+writing\b
    | \A(?:the\s+(?:{_NOUN}))?(?:will|would)\s+(?:win|increase|boost|raise|convince|persuade
        |attract|impress|please|delight|entertain|change|inspire|move)\b
    | (?:\A(?:the\s+|its\s+)?|\b(?:model|assistant|AI|LLM|response|answer|system)(?:['’]s)?\s+)
        (?:hidden|internal|private|inner|unspoken)\s+
        (?:reasoning|thoughts?|thinking|monologue|deliberation|chain|scratch\s?pad)\b
    | \A(?:the\s+)?(?:(?:model|assistant|AI|LLM|response|answer|system)['’]s\s+)?
        (?:chain[\s-]of[\s-]thought|reasoning\s+trace|scratch\s?pad|thinking)\s+
        (?:\w+ly\s+)?(?:is|was
        |has|had|did|does|(?:consider|weigh|mention|contain|include|explore|show|check|think|plan
        |acknowledge|verifie|examine|recall|address)(?:s|e?d)?)\b
    | \b(?:model|assistant|AI|LLM)\s+(?:is|was|seems|feels)\s+(?:\w+ly\s+)?(?:confident|certain|sure
        |aware|honest|sincere|conscious|motivated)\b
    | \A(?:the\s+)?(?:model|assistant|AI|LLM)\s+(?:did\s+not|didn['’]t|has\s+not|had)\s
    | \A(?:the\s+)?(?:response|answer|generation|answering|inference)\s+(?:time|latency)\s+(?:is|was
        |stays|must|does)\b
    | \A(?:it\s+|(?:the\s+)?(?:answer|response|reply|text|poem|story|essay|letter|code)\s+)?(?:took
        |needed)\s+(?:[\w'’-]+\s+){{1,7}}?to\s+
        (?:write|produce|generate|answer|respond|compose|create|complete)\b
    | \b(?:will|would)\s+(?:go\s+viral|sell\s+well|be\s+remembered|stand\s+the\s+test)\b
    """,
    re.I | re.X,
)
_THING = (
    r"(?:image|picture|photo|screenshot|chart|diagram|video|audio|recording|map"
    r"|spreadsheet|attachment|file|transcript|pdf)"
)
_OTHER = (
    r"(?:reference|gold|golden|sample|ideal|expected|official|expert|published|previous|earlier"
    r"|prior"
    r"|baseline|(?:teacher|instructor|textbook)(?:['’]?s)?)"
)
_ANSWER = (
    r"(?:answer|solution|response|output|result|text|translation|summary|version|draft|essay|letter"
    r"|e-?mail|code|query|plan|implementation|wording|report|reply|submission|speech|story"
    r"|poem|script|program)"
)
REFERENCE = re.compile(
    rf"""
    \b(?:reference|gold|golden|sample|ideal)\s+{_ANSWER}s?\b
    | \bmodel\s+(?:letter|essay|solution|implementation|translation|e-?mail)s?\b | \b(?:answer
        |solution|marking|mark)\s+(?:key|sheet|scheme)\b
    | \b(?:as\s+in|in|from|per)\s+the\s+ground\s+truth\b
    | \b(?:previous|earlier|prior)\s+(?:response|answer|output|version|draft)\b
    | \b(?:than|as)\s+the\s+(?:(?:first|second|other|last)|{_OTHER})\s+(?:\w+\s+)?{_ANSWER}s?\b
    | \bthan\s+(?:response|answer|output)\s+[A-D1-4]\b
    | \bbeats\s+the\s+baseline\s+{_ANSWER}\b
    | \bbest\s+of\s+the\s+\w+\s+(?:answers|responses|outputs|plans|texts)\b
    | \b(?:match|agree|correspond|compare|identical|equal|same
        |consistent)\w*\s+(?:[\w-]+\s+){{0,2}}?
        (?:(?:with|to|as|against)\s+)?(?:the\s+|an?\s+)?
        (?:ground\s+truth|model\s+answer|{_OTHER}\s+(?:\w+\s+)?{_ANSWER}s?)\b
    """,
    re.I | re.X,
)
ATTACHED = re.compile(
    rf"""
    \b(?:attached|enclosed|uploaded)\s+({_THING}|document|article|table|text|report|data|letter)s?\b
    | \b({_THING}|document|article|table|text|report|letter|graph|figure)s?\s+(?:that|which)\s+
        (?:is|was|are|were)\s+(?:attached|enclosed|uploaded|included|provided|shown|supplied|sent)\b
    | (?<=\bthe\s)(?:attached|enclosed|uploaded|linked)\s+(?:\w+\s+)?(\w+)
    | \b(?:in|from|(?:consistent|agrees?|compare[sd]?)\s+with|match(?:es)?|based\s+on
        |according\s+to)\s+
        the\s+({_THING}|figure)\b
    | \bsource\s+(document|text)\b | \b(\w+)\s+given\s+below\b
    | \b(?:provided|given|supplied)\s+({_THING})\b
    | \b(textbook|sheet|handbook|manual|policy|template|brief|guidelines?|leaflet|brochure|syllabus)
        \s+(?:provided|given|supplied|attached|enclosed|shared)\b(?!\s+by)
    | \b(\w+)\s+(?:linked|attached|enclosed)\s+(?:above|below|by\s+the\s+(?:user|customer)
        |to\s+(?:the|this|my)\s+(?:prompt|message|question|post|task|e-?mail|request))\b
    | \b({_THING}|table|figure|graph|list|passage|article|excerpt|document|memo|report|letter|note
        |page|paper|schedule|contract|statement|e-?mail)s?\s+(?:above|below|provided|supplied|shown|attached|(?:that\s+)?the\s+(?:user|customer)\s+
        (?:shared|sent|attached|uploaded))\b
    | \b(table|figure|fig\.|slide|appendix|exhibit)\s+(?:\d|(?-i:[A-D])\b) | \b(slides|handouts?)\b
    """,
    re.I | re.X,
)
DOCUMENTS = ("paper", "article", "report", "document", "study", "book", "chapter", "thesis")
NUMBER_OF = re.compile(r"\s(?:\d|[A-D])\Z")  # "Table 2": of a document that the task may be on
NUMBERED = re.compile(
    r"\b(?:(?:snippets?|sources?|documents?|passages?|excerpts?)\s+[\[\"“(#]?|cit(?:es?|ing)\s+\[)"
    r"([A-Z]{0,2}\d{1,3})\b"
    r"(?!\s*(?:times|%|or|and|words)\b)",
    re.I,
)
_INJECTING = frozenset(
    "ignore disregard forget override bypass mark rate grade score judge count treat "
    "give award assign grant output "
    "return always regardless matter whatever im inst sys system assistant grader "
    "evaluator verdict output answer reply respond vote choose select pick scoring "
    "grading judging met satisfied fulfilled "
    "default check verify never skip accept approve pass declare consider report graders judges "
    "instruction instructions pretend act now evaluators attention highest acting reviewer "
    "reviewers rater raters scorer whoever whom whomever criterion item say respond print write "
    "ignoriere ignorieren ignorez ignorer ignora if".split()
)
_MARKUP = re.compile(r"[<\[{#]")
_NEEDING = frozenset(
    "reference gold golden sample ideal expected official expert expert's expert’s published "
    "previous earlier prior baseline teacher teacher's teacher’s instructor instructor's "
    "textbook key sheet scheme truth model attached enclosed uploaded linked provided given "
    "supplied "
    "above "
    "below shown other than best source shared sent image picture photo screenshot chart "
    "diagram video audio recording map spreadsheet attachment file transcript pdf figure fig "
    "table slide slides appendix exhibit handout handouts".split()
)
SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
LONGEST = 400  # characters: a longer text is a scheme for grading, which may speak of marks
ASKED = re.compile(
    r"\s*(?:does|do|is|are|has|have|did|can|was|were)\b", re.I
)  # a question about an answer
# UNVERIFIABLE needs one of these words
_HIDDEN = frozenset(_ONES) | {f"{w}s" for w in _ONES}.union(
    "nobody makes afterwards after written changes wins no feel audience people children families "
    "was "
    "were is model assistant will would reasoning thought thoughts thinking chain took needed "
    "ai llm latency monologue deliberation scratchpad scratch".split()
)
TIMES = 20.0  # a weight this many times the median of its row decides alone, or counts for nothing
BEST = re.compile(
    r"(excellent|outstanding|very good|good|great|yes|always|full|fully|complete|completely"
    r"|correct|strong|high|best|met|exceeds|pass|passes|passed|true)\b",
    re.IGNORECASE,
)
WORST = re.compile(
    r"(poor|very poor|bad|terrible|no|none|never|not|missing|absent|incorrect|wrong|weak|low"
    r"|worst|unmet|fail(?:s|ed|ure)?|inadequate|unsatisfactory|false)\b",
    re.IGNORECASE,
)


def wrong_sign(c: Criterion) -> str | None:
    """What is odd about the sign of a weight, or None.

    >>> wrong_sign(Criterion(id="c", text="Fails to name the river.", weight=2))
    'it names a fault, and meeting it is rewarded'
    >>> wrong_sign(Criterion(id="c", text="Correctly names the river.", weight=-2))
    'it names something good, and meeting it is punished'
    """
    if c.weight == 0 or c.check is not None:
        return None
    head = c.text.split(".")[0][:160]
    if c.weight > 0:
        bad = BAD.match(head) or (
            GOOD.match(_undenied(head)) and not TURN.search(_undenied(c.text))
        )
        return "it names a fault, and meeting it is rewarded" if bad else None
    denied = BAD.match(_undenied(head))
    good = SPARED.match(head) or denied or (GOOD.match(head) and not TURN.search(c.text))
    return "it names something good, and meeting it is punished" if good else None


def _undenied(head: str) -> str:
    """The head of a criterion without its denial; "" where nothing is denied.

    >>> _undenied("Does not invent sources"), _undenied("It never misses a step"), _undenied("Is")
    ('invents sources', 'It misses a step', '')
    """
    m = DENIED.match(head)
    if m is None:
        return ""
    root = re.sub(r"(?<=[^aeiou])y\Z", "ie", m[2] or "")
    verb = m[3] or m[4] or re.sub(r"(s|sh|ch|x|z|o)\Z", r"\1e", root) + "s"
    return f"{m[1]}{verb}{head[m.end() :]}"


def injected(text: str, tokens: frozenset[str]) -> bool:
    """True when a criterion talks to the judge instead of describing an answer, be it in a
    sentence behind a question about one."""
    if len(text) > LONGEST or (tokens.isdisjoint(_INJECTING) and not _MARKUP.search(text)):
        return False
    plain = _unquoted(text)
    each = [x for x in SENTENCE.split(plain) if not x.startswith("(") and not ASKED.match(x)]
    return any(
        (m := INJECTED.search(x)) and not SPEAKS.search(x[: m.start()])
        for x in (each if ASKED.match(plain) else [plain, *each])
    )


def _unquoted(text: str) -> str:
    """A sentence without the words that it quotes: it is about them; a text that is little more
    than a quotation stays as it is."""
    rest = SPOKEN.sub(" ", text)
    return rest if len(rest.split()) >= 4 else text


def unverifiable(text: str, tokens: frozenset[str]) -> bool:
    """True when neither the answer nor the task can show whether the criterion holds."""
    return not tokens.isdisjoint(_HIDDEN) and bool(UNVERIFIABLE.search(text))


def missing_reference(c: Criterion, tokens: frozenset[str], task: Task) -> str | None:
    """What a criterion compares with although the task does not have it, or None.

    >>> task = Task(id="t", prompt="Solve it.")
    >>> c = Criterion(id="c", text="Agrees with the reference answer.")
    >>> missing_reference(c, frozenset(["reference"]), task)
    'Agrees with the reference answer'
    """
    if c.check is not None:
        return None
    if named := _unknown_source(c.text, task):
        return named
    if tokens.isdisjoint(_NEEDING) or task.sources:
        return None
    asked = task.asked.lower()
    if m := REFERENCE.search(c.text):
        held = ("reference", "answer key", "gold", "solution:", *m[0].lower().split()[-2:-1])
        known = bool(task.truth or task.history) or any(w in asked for w in held)
        return None if known and "other" not in m[0] else m[0]
    if not _long(task.asked) and (m := ATTACHED.search(c.text)):
        thing = next(g for g in m.groups() if g).lower()
        held = (thing.rstrip("s"), "attached", *(DOCUMENTS if NUMBER_OF.search(m[0]) else ()))
        return None if any(w in asked for w in held) else m[0]
    return None


def _unknown_source(text: str, task: Task) -> str | None:
    """A numbered source ("snippet S9") that is not among the task's, or None."""
    for m in NUMBERED.finditer(text):
        held = {k.casefold() for k in task.sources}
        held |= {k.lstrip("abcdefghijklmnopqrstuvwxyz") for k in held}
        numbered = all(re.fullmatch(r"[a-z]{0,3}\d{1,3}", k) for k in held)
        asked = bool(re.search(rf"(?<!\w)\[?{re.escape(m[1])}(?!\w)", task.asked, re.I))
        wanted = m[1].casefold()
        if not asked and wanted not in held and (numbered if held else not wanted.isdigit()):
            return m[0]
    return None


def _long(prompt: str) -> bool:
    """True where a prompt may hold the thing that it speaks of."""
    return len(prompt.split()) > 60 or "http" in prompt or "\n\n" in prompt


SENT = ("attached", "enclosed", "uploaded")


def unattached(task: Task) -> str | None:
    """What a short prompt speaks of as attached although nothing is there, or None."""
    text, lower = task.asked, task.asked.lower()
    if task.sources or task.history or not any(w in lower for w in SENT) or _long(text):
        return None
    m = ATTACHED.search(text)
    return m[0] if m and m[0].split()[0].lower() in SENT else None


def extreme_weights(criteria: Sequence[Criterion]) -> list[tuple[Criterion, str]]:
    """Criteria whose weight dwarfs the others of the row, or is dwarfed by them; trees share theirs
    down and are left out."""
    sizes = [abs(c.weight) for c in criteria if c.weight and branch(c) is None]
    named = {i for c in criteria if c.check for i in c.check.get("of") or ()}
    counts = {c.id for c in criteria if c.weight or c.required} | named
    out = [
        (c, "its weight is 0: it does not count") for c in criteria if sizes and c.id not in counts
    ]
    if len(sizes) < 2 or (len(sizes) == 2 and max(sizes) < 1000 * min(sizes)):
        return out
    middle = median(sizes) if len(sizes) > 2 else min(sizes)
    for c in criteria:
        times = abs(c.weight) / middle if branch(c) is None else 1.0
        if times >= TIMES:
            out.append(
                (c, f"its weight is {times:.3g} times the median of the row: it decides alone")
            )
        elif 0 < times <= 1 / TIMES:
            part = f"1/{math.ceil(1 / times):.3g}"
            out.append((c, f"its weight is {part} of the median of the row: it hardly counts"))
    return out


def best_first(levels: Sequence[str]) -> str | None:
    """What is wrong with levels whose first is better than their last; they are read worst first.

    >>> best_first(("Excellent", "Good", "Poor")), best_first(("no", "partly", "yes"))
    ("'Excellent' is worth 0 and 'Poor' 1", None)
    """
    if not levels:
        return None
    first, last = levels[0], levels[-1]
    low, top = ends_of(first), ends_of(last)
    turned = low > top if low and top else BEST.match(first) and WORST.match(last)
    return f"{first[:40]!r} is worth 0 and {last[:40]!r} 1" if turned else None
