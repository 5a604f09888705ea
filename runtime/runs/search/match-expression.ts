/** What a person types at once; more words than that narrow nothing down. */
const MOST_WORDS = 12
/** Shorter words are looked for as they are: as beginnings they would match nearly every run. */
const SHORTEST_BEGINNING = 3
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-([0-9a-f]{12})$/i

/** The part of a run's id that tells it from others. */
export const idWord = (id: string): string => id.slice(-12)

/**
 * What is searched for, in the syntax of FTS5; undefined where no word was typed. Each word is a quoted string, so that nothing in it is
 * read as an operator (https://www.sqlite.org/fts5.html#fts5_strings), and all of them have to be there. `known` are whole names that the runs
 * have in the index as well: they and `facts` narrow the search before a run is read.
 */
export function matchExpression(
  facts: readonly string[],
  typed: string,
  known: readonly (string | undefined)[] = [],
): string | undefined {
  const words = typed
    .toWellFormed()
    .replaceAll('\0', ' ')
    .split(/\s+/)
    .map(word => UUID.exec(word)?.[1] ?? word)
    // Without a letter or a digit there is nothing in the index that could be like it.
    .filter(word => /[\p{L}\p{N}]/u.test(word))
    .slice(0, MOST_WORDS)
  if (words.length === 0) return undefined
  // A name without a word in the index would find nothing there.
  const names = known
    .filter(name => name !== undefined)
    .filter(name => /[a-z0-9]/i.test(name))
    .map(name => quoted(name.toWellFormed().replaceAll('\0', ' ')))
  return `facts : (${facts.map(quoted).join(' AND ')}) AND words : (${[...words.map(asked), ...names].join(' AND ')})`
}

const asked = (word: string): string => quoted(word) + ([...word].length < SHORTEST_BEGINNING ? '' : ' *')

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
