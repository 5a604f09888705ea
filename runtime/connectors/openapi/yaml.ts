import type { CST, Document } from 'yaml'
import { nextTurn } from '../../../shared/time/sleep.ts'

/** What is wrong with a text, in a sentence. */
export class YamlProblem extends Error {
  override name = 'YamlProblem'
}

/**
 * What is read of a text between two turns of the event loop is short; what comes after, to make a tree of the tokens and a value of the
 * tree, is done at once. Its time follows from the number of tokens: at this many it takes about a tenth of a second.
 */
export const MOST_YAML_CHARACTERS = 512 * 1024
export const MOST_YAML_TOKENS = 150_000
const TOKENS_IN_A_TURN = 2000
/** Each is looked for among all anchors, and may stand for much. */
const MOST_ALIASES = 100
/** Levels of the parser: up to three for one of the document. */
const MOST_OPEN = 300

/** The value of the one document of a YAML text. Whatever the text, other requests have their turn meanwhile. */
export async function readYaml(text: string): Promise<unknown> {
  if (text.length > MOST_YAML_CHARACTERS) {
    throw new YamlProblem(`expected at most ${MOST_YAML_CHARACTERS} characters of YAML: send a larger document as JSON`)
  }
  const { Composer, Lexer, Parser, visit } = await import('yaml')
  const composer = new Composer({
    uniqueKeys: false,
    stringKeys: true,
    prettyErrors: false,
    // Whatever the text names: in YAML 1.1 a key brings in all keys of another map, and !!omap compares its keys in pairs.
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
  })
  // It would gather all problems, each with a stack: hundreds of thousands in a text of commas.
  let first: YamlProblem | undefined
  Object.assign(composer, {
    onError(at: SourcePosition, _: string, message: string, warning?: boolean) {
      if (warning) return
      // What is thrown comes by here again on its way out, once for each level.
      first ??= problemAt(text, at, message)
      throw first
    },
  })
  const documents: Document.Parsed[] = []
  let begun = 0
  const take = (tokens: Iterable<CST.Token>) => {
    for (const token of tokens) {
      if (token.type === 'error') throw problemAt(text, token.offset, token.message)
      if (token.type === 'document' && ++begun > 1) throw problemAt(text, token, 'expected one document in the text')
      documents.push(...composer.next(token))
    }
  }
  const parser = new Parser()
  let tokens = 0
  let aliases = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (++tokens % TOKENS_IN_A_TURN === 0) await new Promise<void>(nextTurn)
    if (tokens > MOST_YAML_TOKENS) {
      throw new YamlProblem(`expected at most ${MOST_YAML_TOKENS} tokens of YAML: send a larger document as JSON`)
    }
    if (lexeme.startsWith('*') && ++aliases > MOST_ALIASES)
      throw new YamlProblem(`expected at most ${MOST_ALIASES} aliases`)
    take(parser.next(lexeme))
    if (parser.stack.length > MOST_OPEN) throw new YamlProblem('it is nested too deeply')
  }
  take(parser.end())
  documents.push(...composer.end(true, text.length))
  const [document] = documents
  if (document === undefined) return undefined
  visit(document, {
    Map(_, { items }) {
      const names = new Set<unknown>()
      for (const { key } of items) {
        const { value, range } = key as { value: unknown; range: SourcePosition }
        if (names.has(value)) throw problemAt(text, range, 'expected each key of a map once')
        names.add(value)
      }
    },
  })
  return document.toJS({ maxAliasCount: MOST_ALIASES }) as unknown
}

type SourcePosition = number | readonly number[] | { offset: number }

function problemAt(text: string, place: SourcePosition, message: string): YamlProblem {
  const offset = typeof place === 'number' ? place : 'offset' in place ? place.offset : (place[0] ?? 0)
  const lines = text.slice(0, offset).split('\n')
  return new YamlProblem(`line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${message}`)
}
