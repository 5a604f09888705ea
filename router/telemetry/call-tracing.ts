import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { CollectorPlace } from '../../shared/telemetry/collector.ts'
import { exporter } from '../../shared/telemetry/exporter.ts'
import { attributes } from '../../shared/telemetry/otlp.ts'
import { VERSION } from '../../shared/version.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { CallContext } from '../receipt/unhashed.ts'
import { callSpans } from './call-spans.ts'

/** A collector that does not answer holds up the end of a router no longer than this. */
const CLOSE_MS = 2000

/** Receipts as traces, on their way to a collector. */
export function callTracing(
  { url, headers, serviceName }: CollectorPlace,
  { metrics, log, sha256 }: { metrics: Metrics; log: Log; sha256: Sha256 },
) {
  const sending = exporter({
    url,
    headers,
    fetch: (to, init) => fetch(to, init),
    resource: attributes({ 'service.name': serviceName, 'service.version': VERSION }),
    scope: { name: 'waybill', version: VERSION },
    metrics,
    log: log.target('router.telemetry'),
  })
  return {
    add(record: UnsealedTrace, context: CallContext | undefined): void {
      for (const span of callSpans(record, context, sha256)) sending.add(span)
    },
    async close(): Promise<void> {
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<void>(resolve => {
        timer = setTimeout(resolve, CLOSE_MS)
      })
      await Promise.race([sending.close(), late])
      clearTimeout(timer)
    },
  }
}
