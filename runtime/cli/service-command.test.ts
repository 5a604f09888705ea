import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runtimeClient } from '../../shared/client/client.ts'
import { opensslAvailable, selfSigned } from '../../tests/backends/certificate.ts'
import { explanationOf } from './service-command.ts'

it.runIf(await opensslAvailable())('a certificate that is not trusted is no service that is away', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-certificate-'))
  const { cert, key } = await selfSigned(folder, 'localhost')
  const server = createServer({ cert: await readFile(cert), key: await readFile(key) }, (_, response) => response.end())
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  try {
    const url = `https://localhost:${(server.address() as AddressInfo).port}`
    const error = await runtimeClient({ url, retries: 0 })
      .agents.list()
      .catch((thrown: Error) => thrown)
    expect(explanationOf(error as Error)).toBe(
      `${url} does not answer, since its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT): it has to be valid now, for that address, and of an authority that Node or NODE_EXTRA_CA_CERTS trusts.`,
    )
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
})
