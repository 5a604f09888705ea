import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const root = new URL('..', import.meta.url).pathname
export const GENERATED = join(root, 'shared/tunnel/gateway.gen.ts')

/** The TypeScript of shared/tunnel/gateway.proto, made by buf and its local plugin; nothing is downloaded. */
export async function generateGateway(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-proto-'))
  try {
    const template = {
      version: 'v2',
      plugins: [{ local: join(root, 'node_modules/.bin/protoc-gen-es'), out: folder, opt: ['target=ts'] }],
    }
    await promisify(execFile)(
      join(root, 'node_modules/.bin/buf'),
      ['generate', 'shared/tunnel', '--template', JSON.stringify(template)],
      { cwd: root },
    )
    const made = await readFile(join(folder, 'gateway_pb.ts'), 'utf8')
    // Not every message is made by name, and all of them belong to the protocol.
    return made.replaceAll(/^ \* Describes the message /gm, ' * @public\n * Describes the message ')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) await writeFile(GENERATED, await generateGateway())
