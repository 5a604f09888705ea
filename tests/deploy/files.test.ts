import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { nodeRunEnv } from '../../node-agent/env.ts'
import { routerEnv } from '../../router/env.ts'
import { runtimeEnv } from '../../runtime/env.ts'
import { readEnv } from '../../shared/env/read-env.ts'

const read = (name: string) => readFile(new URL(`../../docs/deploy/${name}`, import.meta.url), 'utf8')
const known = new Set([runtimeEnv, routerEnv, nodeRunEnv].flatMap(env => Object.keys(env.shape)))

const named = z.object({ name: z.string() })
const labels = z.record(z.string(), z.string())
const statefulSet = z.object({
  kind: z.literal('StatefulSet'),
  spec: z.object({
    serviceName: z.string(),
    selector: z.object({ matchLabels: labels }),
    template: z.object({
      metadata: z.object({ labels }),
      spec: z.object({
        containers: z.array(z.object({ volumeMounts: z.array(named) })).length(1),
        volumes: z.array(named),
      }),
    }),
    volumeClaimTemplates: z.array(z.object({ metadata: named })),
  }),
})

/** Every variable of waybill that a file names must be one that a service reads, with a value that it takes. */
function checkVariables(vars: Record<string, string>): void {
  for (const name of Object.keys(vars)) expect([...known], name).toContain(name)
  expect(() => readEnv(runtimeEnv, vars)).not.toThrow()
  expect(() => readEnv(routerEnv, vars)).not.toThrow()
}

const { version, bin } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
  bin: Record<string, string>
}

it('the container file has a target for each service, with variables, a program and a command that exist', async () => {
  const text = await read('Dockerfile')
  const words = text.split('\n').flatMap(line => /^ENV (.*)$/.exec(line)?.[1]?.split(' ') ?? [])
  const { MALLOC_ARENA_MAX, NODE_OPTIONS, ...own } = Object.fromEntries(
    words.map(word => word.split(/=(.*)/s).slice(0, 2) as [string, string]),
  )
  expect([MALLOC_ARENA_MAX, NODE_OPTIONS]).toEqual(['1', '--max-semi-space-size=4'])
  checkVariables(own)
  const targets = [...text.matchAll(/^FROM base AS (\S+)$/gm)].map(([, name]) => name)
  expect(targets.sort()).toEqual(['node-agent', 'router', 'runtime'])
  const programs = [...text.matchAll(/^ENTRYPOINT \["node", "--disable-sigusr1", "\/opt\/waybill\/(.*)"\]$/gm)].map(
    ([, path]) => `./${path}`,
  )
  expect(programs.sort()).toEqual(
    Object.values(bin)
      .map(path => (path.startsWith('./') ? path : `./${path}`))
      .sort(),
  )
  expect(text).toContain('/readyz')
  for (const [, named] of text.matchAll(/-t waybill-\S+:(\S+)/g)) expect(named).toBe(version)
})

it('the compose file and the Kubernetes manifest are what their schemas ask for', async () => {
  const port = z.string().regex(/^127\.0\.0\.1:80[89]0:8080$/)
  const build = z.object({
    context: z.literal('../..'),
    dockerfile: z.literal('docs/deploy/Dockerfile'),
    target: z.string(),
  })
  z.object({
    services: z.object({
      runtime: z.object({ build, ports: z.tuple([port]), volumes: z.tuple([z.literal('runtime:/data')]) }),
      router: z.object({
        build,
        // Node as process 1 waits for no process that a gate has left behind.
        init: z.literal(true),
        ports: z.tuple([port]),
        volumes: z.tuple([z.literal('router:/data')]),
      }),
    }),
    volumes: z.object({ runtime: z.object({}), router: z.object({}) }),
  }).parse(parse(await read('compose.yaml'), { merge: true }))
  const documents = parseAllDocuments(await read('kubernetes.yaml'))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const service = z.object({ kind: z.literal('Service'), metadata: named }).parse(documents[0]!.toJS())
  const { spec } = statefulSet.parse(documents[1]!.toJS())
  expect(spec.serviceName).toBe(service.metadata.name)
  expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels)
  const pod = spec.template.spec
  const volumes = [...pod.volumes.map(({ name }) => name), ...spec.volumeClaimTemplates.map(one => one.metadata.name)]
  expect(pod.containers[0]!.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.sort())
})

it('the unit names a command that exists and variables that are read', async () => {
  const text = await read('waybill.service')
  const vars = [...text.matchAll(/^Environment="?([A-Z_]+)=(.*?)"?$/gm)].map(([, name, value]) => [name!, value!])
  const { NODE_OPTIONS, MALLOC_ARENA_MAX, ...own } = Object.fromEntries(vars)
  expect(MALLOC_ARENA_MAX).toBe('1')
  expect(NODE_OPTIONS).toBe('--disable-sigusr1 --max-semi-space-size=4')
  checkVariables(own)
  expect(text).toMatch(/^ExecStart=\/opt\/waybill\/bin\/runtime serve --with-router$/m)
  expect(text).toContain(`--prefix /opt/waybill ./waybill-${version}.tgz`)
  // Whatever ends it, it is started again: also at a boot where its store comes later.
  expect(text).toMatch(/^StartLimitIntervalSec=0$/m)
  const sections = [...text.matchAll(/^\[(\w+)\]$/gm)].map(([, name]) => name)
  expect(sections).toEqual(['Unit', 'Service', 'Install'])
  for (const line of text.split('\n')) expect(line).toMatch(/^(?:$|#|\[\w+\]$|[A-Z]\w+=)/)
  // Where systemd is, its own reading counts.
  const analyze = spawnSync('systemd-analyze', [
    'verify',
    new URL('../../docs/deploy/waybill.service', import.meta.url).pathname,
  ])
  if (analyze.error === undefined) expect(String(analyze.stderr)).not.toMatch(/Unknown|Failed to parse/)
})
