import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Collector } from '../../shared/telemetry/collector.ts'
import { attributes, type ExporterOptions, exporter } from '../../shared/telemetry/exporter.ts'
import { VERSION } from '../../shared/version.ts'
import { telemetry } from './telemetry.ts'

export interface TracingOptions extends Collector, Pick<ExporterOptions, 'limits'> {
  metrics: Metrics
  log: Log
  sha256: Sha256
}

/** Traces of runs, on their way to a collector. */
export function assembleTracing({ resource, sha256, ...rest }: TracingOptions) {
  const sending = exporter({ ...rest, resource: attributes(resource), scope: { name: 'waybill', version: VERSION } })
  return { observer: telemetry(sending, sha256), close: sending.close }
}
