import type { DialectName } from './candidate.ts'
import { asArray, asObject, type Json, type JsonObject } from './json-value.ts'

/** Whether an event of a stream is more than a sign of life: a ping and an empty delta are none. Deltas carry their own kind or role beside what they say, if they say anything. */
export function saysSomething(dialect: DialectName, event: JsonObject): boolean {
  if (dialect === 'messages') {
    return event.type === 'content_block_delta' ? hasContent(event.delta) : event.type !== 'ping'
  }
  if (dialect === 'responses') return event.type !== 'keepalive' && event.delta !== ''
  return asArray(event.choices)
    .map(asObject)
    .some(({ delta, finish_reason: finish }) => hasContent(delta) || (finish !== undefined && finish !== null))
}

function hasContent(delta: Json | undefined): boolean {
  return Object.entries(asObject(delta)).some(([name, value]) => {
    if (name === 'type' || name === 'role' || value === null || value === '') return false
    return !Array.isArray(value) || value.length > 0
  })
}
