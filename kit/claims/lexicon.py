"""The words of direction: which say up, down, unchanged; which negate; which only ask, suppose or
report.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# forms that stand for a change of the thing before them ("X rises") or after them ("raises X", "a
# rise in X", "higher X")
UP = _words("""
    increase increases increased increasing rise rises rose risen rising grow grows grew grown
    growing climb climbs climbed climbing raise raises raised raising upregulate upregulates
    upregulated upregulating upregulation activate activates activated activating activation induce
    induces induced inducing induction elevate elevates elevated elevating elevation enhance
    enhances enhanced enhancing enhancement boost boosts boosted boosting stimulate stimulates
    stimulated stimulating stimulation amplify amplifies amplified amplification expand expands
    expanded expanding expansion accelerate accelerates accelerated accelerating acceleration
    intensify intensifies intensified surge surges surged surging jump jumps jumped soar soars
    soared soaring double doubles doubled doubling triple triples tripled quadruple quadrupled
    strengthen strengthens strengthened higher greater larger bigger faster stronger hotter warmer
    longer up upward upwards more overexpressed overexpression spike spikes spiked swell swells
    swelled gain gains gained widen widens widened lengthen lengthens lengthened heighten heightened
    augment augments augmented multiply multiplies multiplied deepen deepens quicken quickens
    promote promotes promoted increment uptick upturn strengthening lengthening widening deepening
    quickening heightening spiking swelling gaining accumulate accumulating accumulates accumulated
    hyperactivated overactive""")
DOWN = _words("""
    decrease decreases decreased decreasing fall falls fell fallen falling drop drops dropped
    dropping decline declines declined declining reduce reduces reduced reducing reduction lower
    lowers lowered lowering downregulate downregulates downregulated downregulating downregulation
    suppress suppresses suppressed suppressing suppression inhibit inhibits inhibited inhibiting
    inhibition repress represses repressed repression diminish diminishes diminished diminishing
    shrink shrinks shrank shrunk shrinking sink sinks sank sunk sinking weaken weakens weakened slow
    slows slowed slowing slower lessen lessens lessened attenuate attenuates attenuated attenuation
    deplete depletes depleted depletion dampen dampens dampened less fewer smaller weaker colder
    cooler shorter down downward downwards plunge plunges plunged plummet plummets plummeted halve
    halves halved silence silenced underexpressed curtail curtails curtailed dwindle dwindles
    dwindled wane wanes waned shorten shortens shortened ebb ebbs deactivated inactivated dip dips
    dipped slump slumps slumped blunted blunt blunts contract contracts contracted narrow narrows
    narrowed dwindling tumble tumbles tumbled tumbling waning shortening ebbing dipping slumping
    halving depleting weakening sinks narrowing contracting lost loss downturn cut cuts slashed""")
CHANGE = _words("""
    change changes changed changing alter alters altered alteration affect affects affected differ
    differs differed shift shifts shifted vary varies varied effect effects influence influences
    influenced difference move moves moved respond responds responded budge budges budged react
    reacts""")
NONE = _words("""
    unchanged unaffected unaltered constant stable steady flat same unmoved static identical equal
    untouched invariant undisturbed baseline""")
STAY = _words(
    """
        remain remains remained remaining stay stays stayed staying keep keeps kept be is are was
        were hold holds held holding"""
)

# noun forms: a preceding verb acts on the change itself ("reduced inhibition", "prevents the rise")
NOUNS = _words("""
    increase rise decrease fall drop decline reduction growth upregulation downregulation activation
    induction elevation enhancement suppression inhibition repression attenuation depletion loss
    stimulation expansion gain boost surge jump dip change effect difference alteration shift
    acceleration uptick upturn downturn slump spike amplification overexpression increases decreases
    changes""")
PROCESS = _words(
    "suppression inhibition repression activation induction stimulation loss depletion attenuation"
)  # change of a change
SIZES = _words(
    """
        higher lower greater larger bigger smaller less more fewer stronger weaker faster slower
        longer shorter"""
)
TRANSITIVE = _words("""
    raise raises raised raising reduce reduces reducing lower lowers lowering suppress suppresses
    suppressing inhibit inhibits inhibiting repress represses activate activates activating induce
    induces inducing enhance enhances enhancing boost boosts boosting stimulate stimulates
    stimulating promote promotes elevate elevates elevating increase increases increasing decrease
    decreases decreasing attenuate attenuates deplete depletes dampen dampens strengthen strengthens
    weaken weakens slow slows cut cuts halve halves double doubles curtail curtails augment augments
    lessen lessens diminish diminishes shorten shortens lengthen lengthens accelerate accelerates
    downregulate downregulates upregulate upregulates blunt blunts affect affects change changes
    alter alters influence influences intensify intensifies expand expands amplify amplifies silence
    increased decreased reduced lowered suppressed inhibited activated induced enhanced boosted
    stimulated elevated raised repressed upregulated downregulated attenuated doubled halved slowed
    cut affected changed altered""")
ATTRIBUTIVE = _words("""
    increased decreased reduced lowered elevated raised higher lower greater larger smaller more
    less fewer stronger weaker suppressed enhanced inhibited activated upregulated downregulated
    rising falling growing declining increasing decreasing diminished attenuated faster slower
    longer shorter depleted heightened unchanged constant stable steady unaltered overactive bigger
    impaired""")

NEGATORS = _words("""
    not no never neither nor cannot without hardly barely scarcely n't isn't aren't wasn't weren't
    doesn't don't didn't won't can't couldn't wouldn't hasn't haven't hadn't shouldn't nothing
    nobody none unlikely""")
FAILURES = _words(
    "fail fails failed failing failure lack lacks lacked absence unable refuse refuses refused"
)
PREVENTERS = _words("""
    prevent prevents prevented preventing block blocks blocked blocking abolish abolishes abolished
    stop stops stopped halts counteract counteracts counteracted avoid avoids avoided precludes
    prohibits cancels""")
# a clause with one of these speaks about the truth of something: it asserts nothing by itself
DOUBTS = _words("""
    false falsely wrong wrongly untrue incorrect incorrectly myth fallacy misconception nonsense
    fiction mistaken mistakenly debunked disproved disproven refuted impossible absent
    excluded excludes rejected rejects ruled rarely seldom supposedly allegedly""")
TAKES_BACK = (
    "the opposite is",
    "the reverse is",
    "the contrary is",
    "opposite of",
    "or vice versa",
    "or the reverse",
    "or the opposite",
    "or the other way round",
    "or the other way around",
)
NOT_NEGATIONS = (
    "not only",
    "not just",
    "not merely",
    "not simply",
    "no doubt",
    "without doubt",
    "without a doubt",
    "without question",
    "no question",
    "not surprisingly",
    "not least",
    "no wonder",
    "no matter",
    "not unexpectedly",
    "nothing but",
    "none the less",
    "no less than",
)
DENIALS = (
    "i deny that",
    "it is not true that",
    "it isn't true that",
    "not true :",
    "not so :",
    "it is not the case that",
    "it isn't the case that",
    "it is false that",
    "it is wrong that",
    "it is untrue that",
    "there is no evidence that",
    "no evidence that",
    "we found no evidence that",
    "it would be wrong to say that",
    "it is incorrect that",
    "it is a mistake to say that",
    "nobody should claim that",
    "one cannot say that",
    "it is wrong to say that",
    "it is not correct that",
    "it is impossible that",
    "in no way does",
    "by no means does",
    "no sign that",
    "no indication that",
)
# a clause with one of these claims nothing
NO_CLAIM = (
    "whether",
    "not sure that",
    "not certain that",
    "not clear that",
    "not convinced that",
    "unclear if",
    "do not know if",
    "don't know if",
    "doubt that",
    "some say",
    "people claim",
    "used to think",
    "used to believe",
    "once believed",
    "once thought",
    "was said to",
    "were said to",
    "out of the question",
    "some claim",
    "some think",
    "some believe",
    "many say",
    "many think",
    "many believe",
    "people think",
    "people say",
    "people believe",
    "one might expect",
    "one might think",
    "you might think",
    "you might expect",
    "one would expect",
    "it was thought",
    "it was once thought",
    "was believed to",
    "were believed to",
    "was expected to",
    "were expected to",
    "was thought to",
    "were thought to",
    "commonly believed",
    "often claimed",
    "often thought",
    "myth that",
    "claim that",
    "the view that",
    "the idea that",
    "belief that",
    "had been expected",
    "the question is",
    "hypothesis that",
    "hypothesised that",
    "hypothesized that",
    "critics say",
    "i cannot say",
    "i can't say",
    "textbook claim that",
    "rumour that",
    "rumor that",
    "we tested",
    "to test if",
    "to see if",
    "was predicted to",
    "were predicted to",
    "ask if",
    "asked if",
    "wonder if",
    "no idea if",
)
CONDITIONS = _words(
    "if unless when whenever until once before had should suppose supposing provided assuming"
)
# the token before a subject that takes it out of the claim
EXCLUDERS = (
    ("than",),
    ("unlike",),
    ("versus",),
    ("vs",),
    ("compared", "with"),
    ("compared", "to"),
    ("relative", "to"),
    ("rather", "than"),
    ("instead", "of"),
    ("in", "contrast", "to"),
    ("as", "opposed", "to"),
    ("not",),
    ("by",),
    ("independent", "of"),
    ("independently", "of"),
    ("regardless", "of"),
    ("despite",),
    ("through",),
    ("via",),
    ("because", "of"),
    ("due", "to"),
    ("from",),
    ("response", "to"),
    ("except",),
    ("except", "for"),
    ("apart", "from"),
    ("against",),
)
DETERMINERS = _words(
    """
        the a an its their his her this that these those both all any each such some of in on for to
        overall total mean average basal"""
)
# after a subject: the head noun is still the subject
# after a subject: the head noun is something else, or its opposite
OTHER_HEAD = _words("""
    inhibitor antagonist blocker degradation breakdown resistance deficiency scavenger suppressor
    repressor removal clearance knockout mutant antibody vaccine sensor test assay measurement
    research uptake researcher agonist mimetic target inhibition suppression loss depletion defence
    defense consumption""")
LIKEWISE = (
    "so does",
    "so do",
    "so did",
    "as does",
    "as do",
    "as did",
    "so is",
    "so are",
    "so was",
    "so were",
    "as is",
    "as are",
    "as was",
    "as were",
    "likewise",
    "too",
    "as well",
    "also",
    "nor does",
    "nor do",
    "nor did",
    "neither does",
    "neither do",
    "neither did",
    "does the same",
    "did the same",
    "do the same",
    "follows suit",
    "followed suit",
    "similarly",
    "as well as",
    "together with",
    "along with",
    "nor is",
    "nor was",
    "neither is",
    "neither was",
    "nor are",
    "nor were",
)
# words that split a sentence into clauses
HARD = _words(
    """
        ; : – — ( ) while whereas but although though however because since yet so therefore thus
        hence which whereby meanwhile instead and or , then nor when whenever if unless once"""
)

# what may stand between a subject and its word of direction; another word there is not understood
SUPPORTS = _words("""
    tend tends tended begin begins began start starts started continue continues continued seem
    seems appear appears appeared likely going expected found shown known observed seen reported
    predicted able set bound due need needs has have see sees saw cause causes caused causing lead
    leads led let lets make makes made help helps show shows showing showed exhibit exhibits
    experience experiences undergo undergoes display displays go goes went gone going come comes
    came driven pushed suffer suffers suffered enriched expressed""")
HEADS = _words("""
    level levels secretion release activity expression amount amounts concentration concentrations
    rate rates production number numbers output synthesis content signal signals signalling
    signaling pathway pathways supply demand price prices count counts mass size volume value values
    response genes gene set sets score scores transcription translation abundance content
    phosphorylation metabolism function""")
PREPOSITIONS = _words("in of from within among at on after during by with as under for between")
SEEN = _words("""
    seen observed found noted expected reported measured evident clear visible due caused driven
    followed accompanied known shown detected large larger small smaller strong stronger greatest
    largest significant modest mild moderate marked typical normal mediated""")
AFFIRMS = _words("right correct true answer answers one it this that yes")
REFUSES = _words("refuse refuses reject rejects exclude excludes deny denies forget dismiss avoid")
# small closed sets used by the reader
AUXILIARIES = _words("do does did will would may might can could should must shall has have had")
BE = _words("is are was were be been being gets got becomes became")
STATES = {"high": "up", "low": "down", "normal": "none"}  # "X is high", "X: low"
HEDGES = _words("may might could perhaps possibly probably likely maybe seems appears suggests")
PRONOUNS = _words("it they both this these")
PLURAL_PRONOUNS = _words("they both these")
PARTICLES = _words("up down upward upwards downward downwards")
IDIOM_VERBS = _words(
    """
        make makes made set sets take taken taking break breaks broken turn turns looking look shut
        end follow"""
)  # "take up", "break down"
AS_THE_SAME = _words("at in on of by does do did from to")  # "at the same time", "does the same"
GRADED = _words(
    "active abundant expressed frequent common"
)  # "less active" is a direction, "less likely" is none
BETWEEN = _words(
    """
        level levels activity expression amount concentration rate production number both resting
        blood serum plasma human mouse free of in"""
)
LIST_WORDS = (DETERMINERS - {"in", "of", "on", "for"}) | _words(
    """
        , and or nor as well with along together but not also then activity levels level pathway
        pathways expression signaling signalling neither just only"""
)
ELLIPSES = (
    "does not",
    "do not",
    "did not",
    "doesn't",
    "don't",
    "didn't",
    "is not",
    "are not",
    "was not",
    "were not",
    "has not",
    "have not",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
)
LEAD_WORDS = (
    DETERMINERS
    | HARD
    | NEGATORS
    | STAY
    | FAILURES
    | _words(
        """
            it they this these does do did has have had will would may might could can then even
            only also just rather slightly still later again first finally now been being further
            back eventually soon clearly far from either at least if anything goes go went going
            gone an increase decrease there who which that show shows showed as expected much very
            fact indeed probably possibly perhaps truth reality to longer"""
    )
)
EVERY = UP | DOWN | CHANGE | NONE
MOVES = UP | DOWN | CHANGE
SIGNED = UP | DOWN | NONE
