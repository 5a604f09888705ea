import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { routerProgram } from '../../router/cli/commands.ts'
import { panelFiles } from '../../router/panel/files.gen.ts'
import { runtimeProgram } from '../../runtime/cli/commands.ts'
import { verifierFiles } from '../../runtime/receipts/verifier.gen.ts'
import { typed } from '../../shared/cli/testing/typed.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import type { RouterKeys, VerifyReport } from '../../shared/wire/router/checkpoint.ts'

/** What is handed to a verifier: of a run or of a router. */
export type Handed =
  | { receipt: Buffer; journal?: Buffer | undefined; fingerprint: string }
  | { text: Buffer; keys: RouterKeys }

export const EXAMPLE = new URL('../../docs/examples/verify.py', import.meta.url).pathname

/** Reports on a chain call it so; what is wrong with the text of a report of feedback is the same as with any other. */
const READING = /^(?:feedback_)?(parse|duplicate_member|unknown_member|number_form|lone_surrogate)$/
const alike = (reason: string) => READING.exec(reason)?.[1]?.replace('parse', 'not_json') ?? reason

/** The command line, in this process. */
export async function commandLine(folder: string, handed: Handed): Promise<string> {
  const path = (name: string) => join(folder, name)
  if ('text' in handed) {
    await writeFile(path('export.jsonl'), handed.text)
    const { report, passed } = await commandReport(folder, ['--file', path('export.jsonl')], handed.keys)
    return report === undefined ? 'not readable' : reportSays(report, passed)
  }
  await writeFile(path('receipt.json'), handed.receipt)
  if (handed.journal) await writeFile(path('journal.json'), handed.journal)
  const files = [path('receipt.json'), ...(handed.journal ? [path('journal.json')] : [])]
  const { code, out, err } = await typed(runtimeProgram, [
    'verify',
    ...files,
    '--fingerprint',
    handed.fingerprint,
    '--json',
  ])
  if (code === 2) return /it is not (JSON|UTF-8)/.test(err) ? 'not_json' : 'shape'
  const { valid, reason } = JSON.parse(out) as { valid: boolean; reason?: string }
  return valid === (code === 0) ? (valid ? 'valid' : alike(reason ?? '')) : `exit code ${code}`
}

/** What `router verify` reports; no report where it could not read what it was given. */
export async function commandReport(folder: string, what: string[], keys: RouterKeys) {
  const file = join(folder, 'keys.json')
  await writeFile(file, JSON.stringify(keys))
  const { code, out } = await typed(routerProgram, ['verify', ...what, '--key', file, '--json'])
  return { report: out === '' ? undefined : (JSON.parse(out) as VerifyReport), passed: code === 0 }
}

export function reportSays({ valid, reason, tenants }: VerifyReport, passed: boolean): string {
  if (valid !== passed) return 'another exit code than verdict'
  return valid ? 'valid' : alike(reason ?? tenants.find(({ broken_at }) => broken_at !== null)?.reason ?? '')
}

interface BrowserModules {
  verifyReceipt: (receipt: string, journal: string | undefined, fingerprint: string) => Promise<[boolean, string]>
  whyNot: (error: unknown) => string
  proofText: (bytes: Uint8Array) => string
  verifyExport: (bytes: Uint8Array, key: string) => Promise<VerifyReport>
}

/** By Node itself: the tests' own loader would change them on the way. */
const loadModule = createRequire(import.meta.url)

/** The modules that browsers are given, as they are given. */
export async function browserModules(folder: string): Promise<BrowserModules> {
  const load = async (name: string, files: Readonly<Record<string, string>>, modules: string[]) => {
    await makeFolder(join(folder, name))
    await writeFile(join(folder, name, 'package.json'), '{"type":"module"}')
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, name, file), text)
    return modules.map(file => loadModule(join(folder, name, file)))
  }
  const runtime = await load('runtime-page', verifierFiles, ['verify-receipt.js', 'read-proof.js'])
  const router = await load('router-panel', panelFiles, ['verify-export.js'])
  return Object.assign({}, ...[...runtime, ...router]) as BrowserModules
}

export async function browser(modules: BrowserModules, handed: Handed): Promise<string> {
  if ('text' in handed) {
    const report = await modules.verifyExport(handed.text, JSON.stringify(handed.keys))
    return reportSays(report, report.valid)
  }
  try {
    const journal = handed.journal && modules.proofText(handed.journal)
    const [valid, words] = await modules.verifyReceipt(modules.proofText(handed.receipt), journal, handed.fingerprint)
    return valid ? 'valid' : alike(/^\w+/.exec(words)?.[0] ?? words)
  } catch (error) {
    const words = modules.whyNot(error)
    return words.startsWith('This is not ') ? 'shape' : alike(/^\w+/.exec(words)?.[0] ?? words)
  }
}

const DRIVER = `
import base64, json, sys
sys.path.insert(0, sys.argv[1])
import verify
for line in sys.stdin:
    what, first, *texts = json.loads(line)
    print(verify.verdict(getattr(verify, what), first, *(base64.b64decode(text) for text in texts)))
`

/** All verdicts of docs/examples/verify.py, from one process. */
export function python(all: readonly Handed[]): string[] {
  const lines = all.map(handed =>
    JSON.stringify(
      'text' in handed
        ? ['export', handed.keys.keys.map(({ public_key }) => public_key).join(','), handed.text.toString('base64')]
        : [
            'receipt',
            handed.fingerprint,
            ...[handed.receipt, handed.journal].flatMap(one => one?.toString('base64') ?? []),
          ],
    ),
  )
  const args = ['-B', '-c', DRIVER, join(EXAMPLE, '..')]
  const out = execFileSync('python3', args, { input: lines.join('\n') + '\n', encoding: 'utf8', maxBuffer: 1 << 26 })
  return out.trimEnd().split('\n').map(alike)
}
