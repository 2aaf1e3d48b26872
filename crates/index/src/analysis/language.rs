//! The languages we stem, their scripts, and the small words that give them away.

use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;

use super::words::{Shape, Word, Words};

/// A writing system, as far as stemming cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Tamil,
    Other,
}

impl Script {
    /// Returns the script of the first letter.
    pub(crate) fn of(word: &str) -> Script {
        word.chars().next().map_or(Script::Other, Script::of_char)
    }

    pub(crate) fn of_char(letter: char) -> Script {
        match letter {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
            '\u{400}'..='\u{52f}' => Script::Cyrillic,
            '\u{590}'..='\u{5ff}' => Script::Hebrew,
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => Script::Arabic,
            '\u{b80}'..='\u{bff}' => Script::Tamil,
            _ => Script::Other,
        }
    }
}

macro_rules! languages {
    ($($name:ident $script:ident $words:literal)*) => {
        /// A language with a stemmer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Language { $(
            #[doc = stringify!($name)]
            $name,
        )* }

        impl Language {
            /// Every language, in declaration order.
            pub const ALL: &'static [Language] = &[$(Language::$name),*];
            /// How many there are.
            pub(crate) const COUNT: usize = Language::ALL.len();

            pub(crate) fn script(self) -> Script {
                match self { $(Language::$name => Script::$script,)* }
            }

            pub(crate) fn stemmer(self) -> Stemmer {
                match self { $(Language::$name => Stemmer::create(Algorithm::$name),)* }
            }

            fn stop_words(self) -> &'static str {
                match self { $(Language::$name => $words,)* }
            }
        }
    };
}

// Folded, space-separated: articles, pronouns, prepositions, auxiliaries and question words.
languages! {
    English Latin "a an and are as at be been but by did do does for from had has have he her hers him his how i if in into is it its me my of on or our she so that the their them then there these they this to was we were what when where which who whom why will with would you your about can could s t"
    German Latin "aber als am an auch auf aus bei bin bist da das dass dem den der des die dir du ein eine einem einen einer er es fur habe haben hat hatte ich ihm ihn ihr im in ist ja kann kein keine mein meine meiner mich mir mit nach nicht noch nur oder sein seine sich sie sind uber um und uns unser von vor wann war waren warum was welche welcher wenn wer werden wie wir wird wo zu zum zur"
    French Latin "a ai alle au aux avec c ce ces cette d dans de des du elle elles en est et etait ete etre eu il ils j je l la le les leur lui m ma mais me mes moi mon n ne nos notre nous on ou par pas pour qu quand que quel quelle quels qui quoi s sa se ses son sont suis sur t ta te tes toi ton tu un une vos votre vous y"
    Spanish Latin "al como con cual cuando de del donde e el ella ellos en era es esta estan este esto fue ha han hay la las le les lo los mas me mi mis muy no nos o para pero por porque que quien se ser si sin sobre son su sus te tiene tu un una uno y ya yo"
    Italian Latin "ai al alla anche che chi ci come con cosa cui da dal dalla dei del della delle di dove e ed era gli ha hai hanno ho i il in io l la le lei lo loro lui ma mi mia mio ne nei nel nella non o per perche piu quale quando quanto questa questo se si sono su sua suo te ti tra tu un una uno"
    Portuguese Latin "a ao aos as com como da das de do dos e ela elas ele eles em era essa esse esta este eu foi ha isso isto ja lhe mais mas me meu minha muito na nao nas no nos o onde os ou para pela pelo por porque qual quando que quem se sem ser seu sua sao tem um uma voce"
    Dutch Latin "aan als bij dan dat de den der die dit een en er had heb hebben heeft het hij hoe ik in is je kan maar me mee mijn naar niet nog nu of om onze ook op over te tot uit van voor waar wanneer waren was wat we wel welke werd wie wij wordt worden zal ze zich zij zijn"
    Swedish Latin "ar att av da dar de dem den det detta du efter eller en ett for fran ha han har hon hur i ingen inte jag kan kommer man med mig min mitt nar nu och om oss pa sa sig sin sitt ska som till under ut vad var varfor vem vi vid vilken ni"
    Norwegian Latin "alle at av ble de deg den der det dette du eller en er et etter for fra ha han har hun hva hvem hvilken hvor hvorfor i ikke jeg kan med meg men min na nar noe og om oss pa sa seg sin skal som til var ved vi vil"
    Danish Latin "af alle at blev da de dem den der det dette dig du efter eller en er et for fra ha han har havde hun hvad hvem hvilken hvor hvorfor hvornar i ikke jeg kan med mig min nar noget og om op os pa sig skal som til var ved vi vil"
    Finnish Latin "ei ejka en ette ha han hanen he ja jo jos joka jotka kanssa keita kuin kuka kun me mika millainen milloin mina minka minne minulla minun missa mita mutta ne niin nyt olen oli olla on ovat se sen sina sinun sita tai tama tassa te vai"
    Romanian Latin "a ai al ale am are as au ca care ce cel cine cu cum da de din ea ei el ele era este eu fi fost in la le lui mai mea meu mi ne noi nu o pe pentru sa sau se si sunt tu un una unde va vor"
    Hungarian Latin "a az azt de e ebben egy el en es ez ezt fel ha hany hogy hol is itt ki kell le lesz meg mi mert miert mikor milyen mint mit nagyon nekem nem o ok olyan s sem te ti vagy van volt"
    Turkish Latin "ama bana bazi ben beni benim bir biz bu cok da daha de degil diye en gibi hangi hem icin ile ise kadar kim ki mi mu ne neden nerede nasil o olan olarak on onu onun sen siz su var ve veya ya"
    Russian Cyrillic "а без был была были было быть в вам вас весь во вот все вы где да для до его ее если есть еще же за зачем и из или им их к как какая какой когда кто ли меня мне мой мы на над нас не него нет ни но о об он она они от по под почему при с свой со так там то того тоже только ты у уже что чтобы эта эти это этот я"
    Arabic Arabic "في من على الى إلى عن ما ماذا متى اين أين كيف هل هذا هذه ذلك التي الذي هو هي هم انا أنا نحن كان كانت لا لم لن و او أو ان أن مع"
    Greek Greek "ο η το οι τα του τησ των τον την και να σε με για απο που πωσ ποτε ποιοσ τι ειναι ηταν δεν θα στο στη στην στον μου σου μασ εγω εσυ αυτο"
    Tamil Tamil "ஒரு என்று மற்றும் இந்த இது என்ன எங்கே எப்போது யார் நான் நீ அவர் அது"
}

/// Each stop word with the set of languages that have it, one bit each.
static STOP_WORDS: LazyLock<FxHashMap<&'static str, u32>> = LazyLock::new(|| {
    let mut table = FxHashMap::default();
    for &language in Language::ALL {
        for word in language.stop_words().split(' ') {
            *table.entry(word).or_insert(0) |= 1 << language as u32;
        }
    }
    table
});

/// Returns the languages that have a folded word as a stop word, one bit each.
pub(crate) fn stop_languages(word: &str) -> u32 {
    STOP_WORDS.get(word).copied().unwrap_or(0)
}

/// Tells whether a word is a stop word of a language.
pub(crate) fn is_stop(language: Language, word: &Word) -> bool {
    word.stops >> language as u32 & 1 == 1
}

/// Guesses the language of a text from its script and small words, or `None` when they do not tell.
pub(crate) fn guess(words: &Words) -> Option<Language> {
    let mut hits = [0u32; Language::COUNT];
    let (mut letters, mut latin) = (0u32, 0u32);
    let mut others = [0u32; Language::COUNT];
    for word in words.list().iter().filter(|word| word.shape == Shape::Letters && !word.extra) {
        letters += 1;
        let script = Script::of(words.text(word));
        latin += u32::from(script == Script::Latin);
        if script == Script::Latin {
            let mut set = word.stops;
            while set != 0 {
                hits[set.trailing_zeros() as usize] += 1;
                set &= set - 1;
            }
        } else if let Some(&language) =
            Language::ALL.iter().find(|language| language.script() == script)
        {
            others[language as usize] += 1;
        }
    }
    if let Some(&language) = Language::ALL.iter().max_by_key(|&&language| others[language as usize])
        && others[language as usize] * 2 > letters
    {
        return Some(language);
    }
    let english = hits[Language::English as usize];
    let best =
        Language::ALL.iter().copied().rev().max_by_key(|&language| hits[language as usize])?;
    let count = hits[best as usize];
    // English words such as "die" or "a" are small words elsewhere: leave English only on clear evidence.
    (count >= 2 && (best == Language::English || (count > english + 1 && count * 5 >= latin)))
        .then_some(best)
}
