import { readFile } from 'node:fs/promises'
import type { Member } from './cpio.ts'
import { ImageInputError, INTERPRETERS } from './image-inputs.ts'
import { folder } from './package-members.ts'

const NPM = 'usr/lib/node_modules/npm/bin/npm-cli.js'

/** What installs packages for the interpreters, as programs: their packages are unpacked and not installed. */
export function installerMembers(members: readonly Member[]): Member[] {
  const names = new Set(members.map(({ path }) => path))
  for (const name of INTERPRETERS) {
    const program = `usr/bin/${name}`
    if (!names.has(program)) throw new ImageInputError(`The packages in the lock hold no ${program}.`)
  }
  const pip = [...names].find(path => /^usr\/share\/python-wheels\/pip-[^/]*\.whl$/.test(path))
  if (pip === undefined) throw new ImageInputError('The packages in the lock hold no wheel of pip.')
  if (!names.has(NPM)) {
    throw new ImageInputError('The packages in the lock hold no npm: run "bash scripts/setup-host.sh" to fetch it.')
  }
  const launcher = (name: string, line: string): Member => ({
    path: `usr/local/bin/${name}`,
    kind: 'file',
    mode: 0o755,
    content: new TextEncoder().encode(`#!/bin/sh\nexec ${line} "$@"\n`),
  })
  return [launcher('pip', `python3 /${pip}/pip`), launcher('npm', `node /${NPM}`)]
}

/** The clients of the step protocol, where each interpreter finds them. */
export async function clientMembers(): Promise<Member[]> {
  const client = (name: string) => readFile(new URL(`clients/${name}`, import.meta.url))
  return [
    ...['node_modules', 'node_modules/waybill', 'usr/lib', 'usr/lib/waybill'].map(folder),
    { path: 'node_modules/waybill/index.js', kind: 'file', mode: 0o644, content: await client('waybill.js') },
    { path: 'usr/lib/waybill/waybill.py', kind: 'file', mode: 0o644, content: await client('waybill.py') },
  ]
}
