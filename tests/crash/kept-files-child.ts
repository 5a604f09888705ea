import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import type { Sandbox } from '../../node-agent/isolation/driver.ts'
import { runSandbox } from '../../node-agent/run-sandbox.ts'
import { enrol } from '../../node-agent/tunnel/identity.ts'
import type { NodeTransport } from '../../node-agent/tunnel/transport.ts'
import { readSigningKey } from '../../router/host/signing-key.ts'
import { openSpillFile } from '../../router/host/spill-file.ts'
import type { SandboxFor } from '../../runtime/execution/sandbox/sandboxes.ts'
import { rotateMaster } from '../../runtime/host/rotate-master.ts'
import { poolKeyAad } from '../../runtime/nodes/sealed-payloads.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { EnrolReplySchema } from '../../shared/tunnel/gateway.gen.ts'
import { newBoxKeys, sealTo } from '../../shared/tunnel/sealed-payload.ts'

/** Makes each file that a store, a node or a run is lost without, and says on stderr when the maker has said that it is there. */
const [folder = ''] = process.argv.slice(2)
const at = (name: string) => join(folder, name)
const done = (name: string) => writeSync(2, `done ${name}\n`)

// The first start, beside a store that is elsewhere, which syncs no folder for it.
const { masterKeyOf } = await import('../../runtime/host/master-key-file.ts')
const { readEnv } = await import('../../shared/env/read-env.ts')
const { runtimeEnv } = await import('../../runtime/env.ts')
const vars = { PLATFORM_DATA_DIR: at('keys'), PLATFORM_DATABASE_URL: `file:${at('waybill.db')}` }
const db = await openDb(vars.PLATFORM_DATABASE_URL)
await masterKeyOf(readEnv(runtimeEnv, vars), silentLog())
done('keys/master.key')
await rotateMaster(vars, {
  to: undefined,
  onWrapped: () => void done('keys/master.key.next'),
})
done('keys/master.key')
await db.close()

await readSigningKey({ dbPath: at('router.db') })
done('router.db.key')

const spill = await openSpillFile(at('router.db'))
await spill.append('{}')
done('router.db.spill.jsonl')
await spill.close()

const pool = await newBoxKeys()
const transport: Partial<NodeTransport> = {
  enrol: async ({ boxKey }) =>
    create(EnrolReplySchema, {
      nodeId: 'n',
      tenantId: 't',
      pool: 'p',
      poolKeySealed: await sealTo(Uint8Array.from(boxKey), pool.privateKey, poolKeyAad('t', 'p')),
    }),
}
await enrol(at('node.json'), 'token', 'n', transport as NodeTransport)
done('node.json')

const sandbox: Partial<Sandbox> = {
  archive: {
    async *pack() {
      yield new Uint8Array(1000)
    },
    unpack: async () => undefined,
  },
}
const run: Partial<SandboxFor> = {
  fileKeys: { seal: text => text, open: text => text },
  egress: { rules: [] } as unknown as SandboxFor['egress'],
}
const kept = runSandbox(sandbox as Sandbox, run as SandboxFor, {
  tar: at('workspaces/run.tar'),
  close: async () => undefined,
  registries: {},
  reached: () => [],
})
await kept.keep()
done('workspaces/run.tar')
