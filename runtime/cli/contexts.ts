import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UsageError } from 'clipanion'
import { z } from 'zod'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { homeFolder } from '../../shared/host/operator-file.ts'
import { readJson } from '../../shared/json/read-json.ts'

const fileOfContexts = z.object({
  current: z.string().optional(),
  contexts: z.record(z.string(), z.object({ url: z.string(), key: z.string() })),
})
export type Contexts = z.infer<typeof fileOfContexts>
type Vars = Readonly<Record<string, string | undefined>>

/** Where a person's own settings stand; the folder that the XDG base directory specification names. */
function pathOf(env: Vars): string | undefined {
  const home = homeFolder(env)
  const folder = env.XDG_CONFIG_HOME || (home && join(home, '.config'))
  return folder && join(folder, 'waybill', 'contexts.json')
}

/** The services that `runtime login` kept, by name. */
export async function readContexts(env: Vars): Promise<Contexts> {
  const path = pathOf(env)
  if (path === undefined) return { contexts: {} }
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} }
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`)
  }
  const read = fileOfContexts.safeParse(parsed(text))
  if (!read.success) throw new UsageError(`${path} does not read: delete it and run \`runtime login\` again`)
  return read.data
}

/** The file holds keys, so that no other account may read it. */
export async function writeContexts(env: Vars, contexts: Contexts): Promise<void> {
  const path = pathOf(env)
  if (path === undefined) throw new UsageError('this account has no home folder: set HOME or XDG_CONFIG_HOME')
  await makeFolder(dirname(path), 0o700)
  await writeFile(`${path}.part`, JSON.stringify(contexts, null, 2) + '\n', { mode: 0o600, flush: true })
  await chmod(`${path}.part`, 0o600)
  await rename(`${path}.part`, path)
}

/** The service that commands talk to where neither an option nor a variable names one. */
export async function currentContext(env: Vars): Promise<{ url: string; key: string } | undefined> {
  const { current, contexts } = await readContexts(env)
  return current === undefined ? undefined : contexts[current]
}

function parsed(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
