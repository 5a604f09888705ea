import { EFFECT, MOST_SCHEMAS, operationOf, operationsIn, serverOf } from './compile.ts'
import type { Operation, Scheme } from './compiled.ts'
import { DocumentProblem, type Json, member, readDocument } from './document.ts'
import type { SchemaBudget } from './schema.ts'
import { schemesOf } from './security.ts'

/** An operation of a document as it is shown for selection. */
export interface Surveyed {
  operationId: string
  /** What the action would be called: short enough, and no other's. */
  name: string
  method: string
  path: string
  about: string
  /** By its method; an install may say otherwise. */
  effect: Operation['effect']
  /** Config keys that it needs. */
  keys: readonly string[]
  /** Why it cannot be an action. */
  problem?: string
}

export interface Survey {
  title: string
  server?: string
  operations: readonly Surveyed[]
  keys: readonly { name: string; secret: boolean }[]
}

export type Surveying = Survey | { problem: { place: string; message: string } }

/** Of an action; see CUSTOM_ACTION. */
const MOST_NAME = 38
/** Rows on a page; larger documents are installed by hand. */
const MOST_SHOWN = 1000
/** Schemas of the whole document that are looked into, so that the largest takes no more than some tenths of a second. */
const MOST_LOOKED_INTO = 20 * MOST_SCHEMAS

/** What an install of a document could have: every operation, what it does, what it needs, and what is wrong with it. */
export async function survey(given: string | Json): Promise<Surveying> {
  try {
    return surveyOf(await readDocument(given))
  } catch (error) {
    if (!(error instanceof DocumentProblem)) throw error
    return { problem: said(error) }
  }
}

function surveyOf(root: Json): Survey {
  const all = operationsIn(root)
  const keys = new Map<string, boolean>()
  const names = new Set<string>()
  let left = MOST_LOOKED_INTO
  const operations = [...all].slice(0, MOST_SHOWN).map(([operationId, found]): Surveyed => {
    const { method, path } = found
    const name = nameOf(operationId, names)
    const bare = { operationId, name, method: method.toUpperCase(), path, about: '', effect: EFFECT[method], keys: [] }
    if (left < MOST_SCHEMAS) return bare
    const budget: SchemaBudget = { left: MOST_SCHEMAS }
    try {
      const { about, effect, security } = operationOf(root, { operationId, name }, found, operationId, budget)
      const needed = Object.values(schemesOf(root, new Set(security))).flatMap(keysOf)
      for (const { name, secret } of needed) keys.set(name, secret)
      return { ...bare, about, effect, keys: needed.map(({ name }) => name) }
    } catch (error) {
      if (!(error instanceof DocumentProblem)) throw error
      const { place, message } = said(error)
      return { ...bare, problem: place.startsWith('#') ? `${place}: ${message}` : message }
    } finally {
      left -= MOST_SCHEMAS - Math.max(0, budget.left)
    }
  })
  const title = member(member(root, 'info'), 'title')
  const server = serverOf(root)
  return {
    title: typeof title === 'string' ? title.slice(0, 256).toWellFormed() : '',
    ...(server !== undefined && { server }),
    operations,
    keys: [...keys].map(([name, secret]) => ({ name, secret })),
  }
}

/** As an install derives it, cut and numbered where that would not do. */
function nameOf(operationId: string, taken: Set<string>): string {
  const plain = operationId.replaceAll(/[^A-Za-z0-9_-]+/g, '_').slice(0, MOST_NAME) || '_'
  let name = plain
  for (let n = 2; taken.has(name); n++) name = `${plain.slice(0, MOST_NAME - 1 - String(n).length)}_${n}`
  taken.add(name)
  return name
}

function keysOf(scheme: Scheme): { name: string; secret: boolean }[] {
  if (scheme.kind !== 'basic') return [{ name: scheme.key, secret: true }]
  return [
    { name: 'username', secret: false },
    { name: 'password', secret: true },
  ]
}

function said({ place, message }: DocumentProblem): { place: string; message: string } {
  return { place: place.slice(0, 300).toWellFormed(), message: message.slice(0, 500).toWellFormed() }
}
