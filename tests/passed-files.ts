import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = new URL('..', import.meta.url).pathname
const slice = join(root, 'tests/slice.ts')

/** Whether a run that is not full does only some cases of this file, by what it imports. */
export function isSliced(file: string, seen = new Set<string>()): boolean {
  if (file === slice) return true
  if (seen.has(file) || !file.endsWith('.ts')) return false
  seen.add(file)
  const imported = readFileSync(file, 'utf8').matchAll(/^(?:import|export|\})(?:[^'"`]* from)? '(\.[^']+)'/gm)
  return [...imported].some(([, path = '']) => isSliced(join(dirname(file), path), seen))
}

/** The files that an earlier run listed, as WAYBILL_TEST_EXCEPT says. */
export function passedBefore(list = process.env.WAYBILL_TEST_EXCEPT): string[] {
  return list === undefined ? [] : readFileSync(list, 'utf8').split('\n').filter(Boolean)
}
