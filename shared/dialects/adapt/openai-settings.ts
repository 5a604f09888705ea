import type { Accepted, Effort } from '../../models/model-table.ts'
import { asArray, isObject } from '../json-value.ts'
import { capLimit, type Draft, described, dropUnless, fitEffort } from './draft.ts'
import { cutItems } from './splice.ts'

interface OpenAiContext {
  readonly body: Uint8Array
  readonly accepted: Accepted
  readonly refused: ReadonlySet<string>
}

/** Decides how the settings of a chat request become those that a model takes. */
export function adaptChat(book: Draft, { accepted, refused }: OpenAiContext): void {
  for (const name of ['max_completion_tokens', 'max_tokens']) capLimit(book, name, accepted.maxOutput)
  // Servers that turn the effort into thinking say that it is thinking which a model lacks.
  if (refused.has('thinking')) for (const name of ['thinking', 'reasoning_effort']) book.remove(name, 'refused')
  renameLimit(book, accepted.limitName ?? refusedLimit(refused))
  const effort = fitEffort(book.value('reasoning_effort'), accepted.efforts, {
    set: (to, from) => book.replace('reasoning_effort', JSON.stringify(to), { from, to, why: 'unsupported' }),
    leaveOut: from => book.remove('reasoning_effort', 'unsupported', from),
  })
  if (accepted.verbosity === false) book.remove('verbosity', 'unsupported')
  adaptSampling(book, accepted, effort)
}

/** A host that refused one name of the limit knows the other. */
function refusedLimit(refused: ReadonlySet<string>): Accepted['limitName'] {
  if (refused.has('max_completion_tokens')) return 'max_tokens'
  return refused.has('max_tokens') ? 'max_completion_tokens' : undefined
}

function renameLimit(book: Draft, name: Accepted['limitName']): void {
  if (name === undefined) return
  const other = name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
  if (book.span(other) === undefined) return
  // A name that says nothing is no limit, and must not take the place of one that is.
  if (typeof book.value(name) !== 'number' && typeof book.value(other) === 'number') book.remove(name, 'unsupported')
  if (book.span(name) === undefined) book.rename(other, name)
  else book.remove(other, 'unsupported')
}

function adaptSampling(book: Draft, { sampling }: Accepted, effort: Effort | undefined): void {
  const reasons = sampling === 'without_effort' && effort !== undefined && effort !== 'none'
  if (sampling !== 'default' && !reasons) return
  dropUnless(book, 'temperature', 1)
  dropUnless(book, 'top_p', 1)
  dropUnless(book, 'presence_penalty', 0)
  dropUnless(book, 'frequency_penalty', 0)
}

const ENCRYPTED = 'reasoning.encrypted_content'

/** The same of a request of the Responses API. */
export function adaptResponses(book: Draft, { body, accepted, refused }: OpenAiContext): void {
  capLimit(book, 'max_output_tokens', accepted.maxOutput)
  const reasoning = book.value('reasoning')
  const hasNone = accepted.efforts?.length === 0
  let effort: Effort | undefined
  if (isObject(reasoning)) {
    if (hasNone) book.remove('reasoning', 'unsupported')
    else {
      const name = 'effort'
      effort = fitEffort(reasoning.effort, accepted.efforts, {
        set: (to, from) => book.member('reasoning', name, JSON.stringify(to), { from, to, why: 'unsupported' }),
        leaveOut: from => book.member('reasoning', name, undefined, { from, to: null, why: 'unsupported' }),
      })
      for (const key of ['effort', 'summary'])
        if (reasoning[key] !== undefined && refused.has(`reasoning.${key}`))
          book.member('reasoning', key, undefined, { from: described(reasoning[key]), to: null, why: 'refused' })
    }
  }
  const include = book.span('include')
  if (
    include !== undefined &&
    (hasNone || refused.has('include')) &&
    asArray(book.value('include')).includes(ENCRYPTED)
  ) {
    const cuts = cutItems(body, include, text => text === JSON.stringify(ENCRYPTED))
    const why = hasNone ? 'unsupported' : 'refused'
    if (cuts === undefined) book.remove('include', why)
    else book.note({ path: 'include[]', to: null, why }, cuts)
  }
  const text = book.value('text')
  const why = refused.has('text.verbosity') ? 'refused' : accepted.verbosity === false ? 'unsupported' : undefined
  if (isObject(text) && text.verbosity !== undefined && why !== undefined)
    book.member('text', 'verbosity', undefined, { to: null, why })
  adaptSampling(book, accepted, effort)
}
