import type { ModelRequest } from '../../execution/models/model.ts'

const PLAIN = /^[A-Za-z0-9_-]{1,64}$/
const MOST = 64

export interface ToolNames {
  toWire(name: string): string
  fromWire(name: string): string
}

/**
 * Providers take fewer characters in the name of a tool than agents and connectors may have, so some names travel under
 * another one. The same tools always get the same names, or the history of a conversation would contradict itself.
 */
export function toolNames({ tools }: Pick<ModelRequest, 'tools'>): ToolNames {
  const taken = new Set(tools.map(({ name }) => name).filter(name => PLAIN.test(name)))
  const wire = new Map<string, string>()
  const own = new Map<string, string>()
  for (const { name } of tools) {
    if (PLAIN.test(name) || wire.has(name)) continue
    let given = plain(name)
    for (let n = 2; taken.has(given); n++) given = `${plain(name).slice(0, MOST - 5)}_${n}`
    taken.add(given)
    wire.set(name, given)
    own.set(given, name)
  }
  return {
    // A tool that is no longer offered can still stand in the history.
    toWire: name => wire.get(name) ?? plain(name),
    fromWire: name => own.get(name) ?? name,
  }
}

function plain(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MOST) || '_'
}
