// Thinking aloud: sentences in which nearly every word is a choice. A real model is unsure of most of its words; a script that
// is certain of its own would give logprobs of 0, from which nothing can be learnt.

import type { Part } from './grammar.js'
import { phrase, prose } from './prose.js'

const SENTENCES = [
  '{Small|Careful|Short|Plain} {steps|changes|moves} {are|seem|feel} {safer|better|wiser|cheaper} {than|compared with} {large|bold|clever|hasty} {ones|rewrites|guesses}',
  '{First|Before that|For now} I {should|want to|had better|can} {check|recall|consider|note} {what|how much|which part} {the task|the user|this repository} {really|actually|clearly|exactly} {needs|asks for|expects|allows}',
  '{Nothing|Little|Not much} {here|so far|in this folder} {looks|seems|appears} {unusual|hidden|surprising|complicated}, {yet|but|still} {care|patience|attention} {helps|pays|matters}',
  '{Other|Nearby|Similar|Unrelated} {operations|functions|tests|files} {must|should|may} {stay|remain|keep working} {as they are|unchanged|untouched|the same}',
  '{Perhaps|Maybe|Possibly|Probably} {one|a single|the first|another} {command|look|step|attempt} {will do|is enough|suffices|settles it}',
  '{Guessing|Hurrying|Assuming things|Skipping ahead} {would|could|might} {only|just|easily} {cost|waste|lose} {time|a turn|more turns}',
  '{If|When|Should} {that|this|it} {fails|turns out wrong|gives nothing}, {another|a second|a different} {way|try|idea} {is|remains|stays} {possible|open|at hand}',
  '{Then|Afterwards|Next|Later} {I can|we can|I will|one can} {decide|judge|see|tell} {more|better|with confidence|properly}',
  '{Every|Each|Any} {line|change|edit} {has|needs|wants} {a reason|a purpose|some thought}, {otherwise|or else} {nobody|no reader|no reviewer} {can|will} {follow|trust|check} it',
  '{Clear|Simple|Readable|Ordinary} {code|names|wording} {usually|mostly|often|always} {beats|outlasts|wins over} {tricks|cleverness|short forms|comments}',
].map(phrase)

/** `thought` with `sentences` sentences of musing behind it on average, none of them twice. */
export const musing = (thought: Part, sentences: number): Part =>
  prose(thought, ...SENTENCES.map(sentence => ({ probability: sentences / SENTENCES.length, sentence })))
