import { type Accepted, budgetFor, effortFor, LEAST_BUDGET } from '../../models/model-table.ts'
import { asArray, asObject, isObject, type Json, tryParse } from '../json-value.ts'
import { capLimit, type Draft, described, dropUnless, fitEffort, isEffort, isThinkingOff } from './draft.ts'
import { cutItems, cutLifetimes, memberSpan } from './splice.ts'

export interface MessagesContext {
  readonly body: Uint8Array
  readonly accepted: Accepted
  /** Settings that this provider refused before. */
  readonly refused: ReadonlySet<string>
  /** A gate of the route checks the format of the answer. */
  readonly jsonByGate: boolean
  /** The turn goes on after calls that came without thinking, so that thinking cannot begin in it. */
  readonly afterPlainCalls: boolean
}

/** Decides how the settings of a messages request become those that a model takes. */
export function adaptMessages(book: Draft, context: MessagesContext): void {
  const { accepted, refused, body } = context
  const maxTokens = capLimit(book, 'max_tokens', accepted.maxOutput)
  adaptSampling(book, accepted)
  const isOff = adaptThinking(book, context, maxTokens)
  adaptOutputConfig(book, context)
  adaptContextManagement(book, context, isOff)
  if (accepted.longCache === false || refused.has('cache_control.ttl')) {
    const cuts = cutLifetimes(body)
    const why = refused.has('cache_control.ttl') ? 'refused' : 'unsupported'
    if (cuts.length > 0) book.note({ path: 'cache_control.ttl', to: null, why }, cuts)
  }
}

function adaptSampling(book: Draft, { sampling }: Accepted): void {
  if (sampling === 'default') {
    dropUnless(book, 'temperature', 1)
    dropUnless(book, 'top_p', 1)
    dropUnless(book, 'top_k', undefined)
  }
  if (sampling === 'one' && typeof book.value('temperature') === 'number') dropUnless(book, 'top_p', undefined)
}

/** Whether thinking that the client asked for is off now. */
function adaptThinking(book: Draft, context: MessagesContext, maxTokens: number | undefined): boolean {
  const thinking = book.value('thinking')
  if (!isObject(thinking)) return false
  const { type, budget_tokens: budget } = thinking
  const from = type === 'enabled' && typeof budget === 'number' ? `enabled ${budget}` : type
  const isOff = isThinkingOff(type)
  if (from !== 'adaptive' && !isOff && type !== 'enabled') return false
  const leaveOut = (why: 'refused' | 'unsupported' | 'too_large') => {
    book.remove('thinking', why, typeof from === 'string' ? from : described(from))
    return !isOff
  }
  const set = (text: string, to: string, why: 'unsupported' | 'refused' | 'too_large') => {
    book.replace('thinking', text, { from: String(from), to, why })
    return false
  }
  const isRefused = context.refused.has('thinking')
  const forms = context.accepted.thinking
  // Thinking is off in this form, but for a few words between calls of tools.
  if (type === 'between_tools' && (isRefused || forms?.includes(type) === false)) {
    if (!isRefused && forms?.includes('disabled') === false) return leaveOut('unsupported')
    set('{"type":"disabled"}', 'disabled', isRefused ? 'refused' : 'unsupported')
    return true
  }
  if (isRefused) return leaveOut('refused')
  if (type === 'disabled' && forms?.includes(type) === false && forms.includes('between_tools'))
    return set('{"type":"between_tools"}', 'between_tools', 'unsupported')
  if (forms === undefined || forms.some(form => form === type)) {
    if (type !== 'enabled' || typeof budget !== 'number' || maxTokens === undefined || budget < maxTokens) return false
    // Only a limit that was brought down is ours to make room in.
    if (!book.changes.some(({ path }) => path === 'max_tokens')) return false
    const fitting = Math.floor(maxTokens / 2)
    return fitting < LEAST_BUDGET ? leaveOut('too_large') : set(enabled(fitting), `enabled ${fitting}`, 'too_large')
  }
  if (type === 'adaptive' && forms.includes('enabled')) {
    const fitting = canThink(book, context) ? budgetFor(wantedEffort(book), maxTokens ?? 0) : undefined
    return fitting === undefined ? leaveOut('unsupported') : set(enabled(fitting), `enabled ${fitting}`, 'unsupported')
  }
  if (type === 'enabled' && forms.includes('adaptive')) {
    const effort = typeof budget === 'number' ? effortFor(budget) : 'high'
    const hasEffort = effort === 'high' || book.span('output_config') !== undefined
    const text = '{"type":"adaptive"}'
    if (hasEffort) return set(text, 'adaptive', 'unsupported')
    return set(`${text},"output_config":{"effort":"${effort}"}`, `adaptive ${effort}`, 'unsupported')
  }
  return leaveOut('unsupported')
}

const enabled = (budget: number) => `{"type":"enabled","budget_tokens":${budget}}`

/** Without a word of the client a model that thinks on its own does so at a high effort. */
function wantedEffort(book: Draft) {
  const { effort } = asObject(book.value('output_config'))
  return isEffort(effort) ? effort : 'high'
}

/** Thinking within a budget excludes a forced tool call and other sampling, and a turn that began without it. */
function canThink(book: Draft, { afterPlainCalls }: MessagesContext): boolean {
  const { type } = asObject(book.value('tool_choice'))
  const temperature = book.value('temperature') ?? 1
  const others = [book.value('top_p'), book.value('top_k')]
  return !afterPlainCalls && type !== 'any' && type !== 'tool' && temperature === 1 && others.every(isUnset)
}

const isUnset = (value: Json | undefined) => value === undefined || value === null

function adaptOutputConfig(book: Draft, { accepted, refused, jsonByGate }: MessagesContext): void {
  const given = book.value('output_config')
  if (isObject(given)) {
    const { effort } = given
    const leaveOut = (why: 'refused' | 'unsupported') => {
      book.member('output_config', 'effort', undefined, { from: described(effort), to: null, why })
    }
    if (effort !== undefined && refused.has('output_config.effort')) leaveOut('refused')
    else
      fitEffort(effort, takenEfforts(book, accepted), {
        set: (to, from) => book.member('output_config', 'effort', JSON.stringify(to), { from, to, why: 'unsupported' }),
        leaveOut: () => leaveOut('unsupported'),
      })
  }
  // The form of an answer is no wish: it is left out only where a gate decides on it.
  if (accepted.structuredOutput !== false || !jsonByGate) return
  if (isObject(given) && given.format !== undefined)
    book.member('output_config', 'format', undefined, { to: null, why: 'unsupported' })
  book.remove('output_format', 'unsupported')
}

function takenEfforts(book: Draft, { efforts, effortsWithoutThinking }: Accepted): Accepted['efforts'] {
  if (effortsWithoutThinking === undefined || !isThinkingOff(asObject(book.value('thinking')).type)) return efforts
  return effortsWithoutThinking.filter(effort => efforts?.includes(effort) !== false)
}

function adaptContextManagement(book: Draft, { body, accepted, refused }: MessagesContext, isOff: boolean): void {
  const isRefused = refused.has('context_management')
  if (isRefused || accepted.contextManagement === false) {
    book.remove('context_management', isRefused ? 'refused' : 'unsupported')
    return
  }
  const span = isOff ? book.span('context_management') : undefined
  const clearsThinking = (edit: Json | undefined) => String(asObject(edit).type).startsWith('clear_thinking')
  if (span === undefined || !asArray(asObject(book.value('context_management')).edits).some(clearsThinking)) return
  // An edit of thinking is refused where there is none.
  const edits = memberSpan(body, span, 'edits')
  const cuts = edits && cutItems(body, edits, text => clearsThinking(tryParse(text)))
  if (cuts === undefined) book.remove('context_management', 'thinking_off')
  else book.note({ path: 'context_management.edits[]', to: null, why: 'thinking_off' }, cuts)
}
