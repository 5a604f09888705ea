import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { serveRouter } from '../../router/host/node.ts'
import { serveRuntime } from '../../runtime/host/node.ts'
import { requireBackend } from '../backends/require.ts'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string) => readFile(new URL(name, docs), 'utf8')

const rules = z
  .object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            expr: z.string(),
            labels: z.object({ severity: z.enum(['critical', 'warning', 'info']) }),
            annotations: z.object({ summary: z.string(), action: z.string(), runbook: z.string() }),
          }),
        ),
      }),
    ),
  })
  .parse(parse(await read('deploy/prometheus-rules.yaml')))
  .groups.flatMap(group => group.rules)

const dashboard = z
  .object({ panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).min(1) })) })
  .parse(JSON.parse(await read('deploy/grafana.json')))

const SETTINGS = {
  PLATFORM_LOG_LEVEL: 'off',
  PLATFORM_BIND: '127.0.0.1:0',
  ROUTER_LOG: 'off',
  ROUTER_BIND: '127.0.0.1:0',
}

let folder: string
let pages: Record<'runtime' | 'router', string>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-watching-'))
  const page = async (serve: typeof serveRuntime | typeof serveRouter, own: Record<string, string>) => {
    const service = await serve({ ...SETTINGS, ...own })
    try {
      return await (await fetch(`${service.origin}/metrics`)).text()
    } finally {
      await service.close()
    }
  }
  pages = {
    runtime: await page(serveRuntime, { PLATFORM_DATA_DIR: join(folder, 'data') }),
    router: await page(serveRouter, { ROUTER_DB: join(folder, 'router.db') }),
  }
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The metrics of waybill that an expression names. */
const namesIn = (expr: string) => [...expr.matchAll(/\b(?:waybill|router|process)_[a-z_]+/g)].map(([name]) => name)

function exists(name: string): boolean {
  const text = Object.values(pages).join('')
  const histogram = /^(.*)_(?:bucket|sum|count)$/.exec(name)?.[1]
  return text.includes(`# TYPE ${name} `) || (histogram !== undefined && text.includes(`# TYPE ${histogram} histogram`))
}

describe('what is watched', () => {
  it.each(rules.map(rule => [rule.alert, rule] as const))(
    '%s names metrics and a place that exist',
    async (_, rule) => {
      for (const name of namesIn(rule.expr)) expect(exists(name), name).toBe(true)
      const [, page = '', anchor = ''] = /^docs\/(.*\.md)#(.*)$/.exec(rule.annotations.runbook) ?? []
      const anchors = [...(await read(page)).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
        title
          .toLowerCase()
          .replace(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      )
      expect(anchors, rule.annotations.runbook).toContain(anchor)
    },
  )

  it('each query of the dashboard names metrics that exist', () => {
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        expect(namesIn(expr).length, title).toBeGreaterThan(0)
        for (const name of namesIn(expr)) expect(exists(name), `${title}: ${name}`).toBe(true)
      }
    }
  })

  it('a counter that an alert looks at for an increase stands there from the start', () => {
    const text = Object.values(pages).join('')
    const counted = rules.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)/g)].map(([, name]) => name!))
    expect(counted.length).toBeGreaterThan(4)
    for (const name of counted) expect(text, name).toMatch(new RegExp(`^${name}(?:\\{.*\\})? 0$`, 'm'))
  })
})

const promtool = requireBackend(
  'promtool',
  spawnSync('promtool', ['--version']).status === 0,
  'apt-get install prometheus',
)
describe.runIf(promtool)('as Prometheus reads it', () => {
  const run = (args: string[], input?: string) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
    return { status, said: stdout + stderr }
  }

  it('the rules are rules, and each is raised by its fault alone', () => {
    const checked = run(['check', 'rules', new URL('deploy/prometheus-rules.yaml', docs).pathname])
    expect(checked).toMatchObject({ status: 0 })
    const tested = run(['test', 'rules', new URL('prometheus-rules.test.yaml', import.meta.url).pathname])
    expect(tested.said).toContain('SUCCESS')
    expect(tested.status).toBe(0)
  })

  it.each(['runtime', 'router'] as const)('the page of the %s has no fault', service => {
    expect(run(['check', 'metrics'], pages[service])).toEqual({ status: 0, said: '' })
  })
})
