import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))
const nano = z.string().regex(/^\d{16,20}$/)
const scalar = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
  z.strictObject({ doubleValue: z.number() }),
  z.strictObject({ boolValue: z.boolean() }),
])
const value = z.union([scalar, z.strictObject({ arrayValue: z.strictObject({ values: z.array(scalar) }) })])
const keyValues = z.array(z.strictObject({ key: z.string().min(1), value }))

/** ExportTraceServiceRequest of opentelemetry-proto as JSON, as far as we use it and no further. */
const traceRequest = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: keyValues }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string() }),
          spans: z.array(
            z.strictObject({
              traceId: hex(32),
              spanId: hex(16),
              parentSpanId: hex(16).optional(),
              name: z.string().min(1),
              kind: z.int().min(1).max(5),
              startTimeUnixNano: nano,
              endTimeUnixNano: nano,
              attributes: keyValues,
              events: z
                .array(z.strictObject({ timeUnixNano: nano, name: z.string().min(1), attributes: keyValues }))
                .optional(),
              status: z.strictObject({ code: z.int().min(0).max(2) }),
              links: z.array(z.strictObject({ traceId: hex(32), spanId: hex(16), attributes: keyValues })).optional(),
            }),
          ),
        }),
      ),
    }),
  ),
})

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  kind: number
  durationMs: number
  code: number
  links: { traceId: string; spanId: string }[]
  events: { name: string; of: Record<string, unknown> }[]
  startMs: number
  of: Record<string, unknown>
}

/** A collector that refuses what does not have the shape of OTLP. */
export async function collector() {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const headers: Record<string, unknown>[] = []
  const resources: Record<string, unknown>[] = []
  const problems: string[] = []
  let status = 200
  let more: { headers?: Record<string, string>; body?: object } = {}
  let held: Promise<void> | undefined
  let heard = () => {}
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    await held
    bodies.push(body)
    headers.push(request.headers)
    const read = traceRequest.safeParse(JSON.parse(body))
    if (!read.success || request.url !== '/v1/traces' || request.method !== 'POST') {
      problems.push(`${request.method} ${request.url} ${read.error?.message ?? ''}`)
    } else if (status === 200) {
      for (const { resource, scopeSpans } of read.data.resourceSpans) {
        resources.push(values(resource.attributes))
        for (const span of scopeSpans.flatMap(one => one.spans)) {
          const {
            startTimeUnixNano: from,
            endTimeUnixNano: to,
            attributes,
            status,
            links = [],
            events = [],
            ...rest
          } = span
          const durationMs = Number((BigInt(to) - BigInt(from)) / 1_000_000n)
          spans.push({
            ...rest,
            parentSpanId: rest.parentSpanId,
            durationMs,
            startMs: Number(BigInt(from) / 1_000_000n),
            events: events.map(one => ({ name: one.name, of: values(one.attributes) })),
            code: status.code,
            of: values(attributes),
            links: links.map(({ traceId, spanId }) => ({ traceId, spanId })),
          })
        }
      }
    }
    response.writeHead(problems.length > 0 ? 400 : status, { 'content-type': 'application/json', ...more.headers })
    response.end(JSON.stringify(more.body ?? {}))
    heard()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    spans,
    bodies,
    headers,
    resources,
    problems,
    endpoint: `http://127.0.0.1:${port}`,
    answer(next: number, also: typeof more = {}) {
      status = next
      more = also
    },
    /** Gives no answer until the promise resolves. */
    hold(until: Promise<void>) {
      held = until
    },
    async until(enough: () => boolean): Promise<void> {
      while (!enough()) {
        await new Promise<void>(resolve => {
          heard = resolve
        })
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function values(attributes: z.infer<typeof keyValues>): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      if ('intValue' in value) return [key, Number(value.intValue)]
      if ('arrayValue' in value) return [key, value.arrayValue.values.map(one => Object.values(one)[0])]
      return [key, Object.values(value)[0]]
    }),
  )
}
