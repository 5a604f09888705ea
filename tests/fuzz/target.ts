import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type fc from 'fast-check'

/** Something that is tried with made-up cases; a case is plain JSON, so that one that was found out can be kept as it is. */
export interface Target {
  name: string
  cases: fc.Arbitrary<unknown>
  /** Throws where something does not hold. */
  attempt(given: unknown): Promise<void>
  close(): Promise<void>
}

/** A case that once failed, shrunk; the seed and the path say where it came from. */
export interface Found {
  target: string
  seed: number
  path: string
  said: string
  given: unknown
}

export function target<T>(made: {
  name: string
  cases: fc.Arbitrary<T>
  attempt: (given: T) => Promise<void> | void
  close?: () => Promise<void>
}): Target {
  const { name, cases, attempt, close = async () => undefined } = made
  return { name, cases, close, attempt: async given => attempt(given as T) }
}

const FOLDER = new URL('corpus', import.meta.url).pathname

export async function readCorpus(): Promise<Found[]> {
  const names = (await readdir(FOLDER)).filter(name => name.endsWith('.json')).sort()
  return Promise.all(names.map(async name => JSON.parse(await readFile(join(FOLDER, name), 'utf8')) as Found))
}

/** Keeps what was found where every later test run finds it again. */
export async function keepFound(found: Found): Promise<string> {
  await mkdir(FOLDER, { recursive: true })
  const path = join(FOLDER, `${found.target}-${(found.seed >>> 0).toString(16)}.json`)
  await writeFile(path, `${JSON.stringify(found, null, 2)}\n`)
  return path
}
