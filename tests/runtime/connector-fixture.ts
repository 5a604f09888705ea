import { scriptedVendor } from '../../runtime/connectors/testing/scripted-vendor.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../../shared/log/log.ts'
import type { ConnectorInstalled } from '../../shared/wire/runtime/connector.ts'
import { api } from './api.ts'

/** A runtime that may reach one scripted vendor and nothing else of this machine. */
export async function connectorFixture(options: Partial<RuntimeOptions> & { url?: string } = {}) {
  const vendor = await scriptedVendor()
  const lines: string[] = []
  const log = createLog({ filter: { all: 'trace', byTarget: new Map() }, write: line => lines.push(line) })
  const egress = nodeEgress({ rule: outboundRule([readAllowEntry(new URL(vendor.origin).host)!]) })
  const made = await api({ egress, log, masterKey: new Uint8Array(32).fill(9), ...options })
  return {
    ...made,
    vendor,
    lines,
    install: (connectorId: string, config: object) =>
      made.json<ConnectorInstalled>(201, 'POST', '/v1/connectors/install', {
        connectorId,
        config: { baseUrl: vendor.origin, ...config },
      }),
    async close() {
      await made.close()
      await egress.close()
      await vendor.close()
    },
  }
}
