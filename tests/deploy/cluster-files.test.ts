import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { nodeRunEnv } from '../../node-agent/env.ts'
import { runtimeProgram } from '../../runtime/cli/commands.ts'
import { runtimeEnv } from '../../runtime/env.ts'
import { readEnv } from '../../shared/env/read-env.ts'

const read = (name: string) => readFile(new URL(`../../docs/deploy/${name}`, import.meta.url), 'utf8')
const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** What a person has to set, in a form that the services take. */
const SECRETS: Record<string, string> = {
  MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  BOOTSTRAP_KEY: `wb_live_${'a'.repeat(48)}`,
  SQLD_IMAGE: 'sqld:1',
}

/** As compose replaces `${NAME:?}` and `${NAME:-otherwise}`. */
const filled = (text: string) =>
  text.replaceAll(/\$\{(\w+):[?-]([^}]*)\}/g, (_, name: string, otherwise: string) => SECRETS[name] ?? otherwise)

/** Every variable that a file sets for a program is one that it reads, with a value that it takes. */
function checkVariables(vars: Record<string, string>, of: typeof runtimeEnv | typeof nodeRunEnv): void {
  const own = Object.keys(vars).filter(name => !name.startsWith('POD_'))
  for (const name of own) expect(Object.keys(of.shape), name).toContain(name)
  const values = Object.fromEntries(own.map(name => [name, vars[name]!.replace('$(POD_IP)', '10.0.0.7')]))
  expect(() => readEnv(of, values)).not.toThrow()
}

/** A node or a control plane that would take the tunnel for plain text refuses it without PLATFORM_TUNNEL_INSECURE. */
function checkTunnel(vars: Record<string, string>): void {
  const isPlain = vars.PLATFORM_CONTROL_URL?.startsWith('http:') || 'PLATFORM_TUNNEL_BIND' in vars
  expect(vars.PLATFORM_TUNNEL_INSECURE).toBe(isPlain ? '1' : undefined)
}

/** The commands of a script that calls the runtime. */
function checkCommands(script: string): void {
  const listed = runtimeProgram.groups.flatMap(([, names]) => names)
  const called = [...script.matchAll(/\$run (\w+)/g)].map(([, verb]) => `shards ${verb}`)
  expect(called.length).toBeGreaterThan(1)
  for (const one of called) expect(listed).toContain(one)
}

/** Runs a script beside a store that refuses its first shard so many times. */
async function shardsOf(script: string, refusals: number): Promise<{ status: number | null; calls: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-deploy-'))
  const program = async (name: string, text: string) => {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}`)
    await chmod(join(folder, name), 0o755)
  }
  try {
    await program('sleep', '')
    await program(
      'node',
      `echo "$@" >> '${folder}/calls'\ncase "$*" in *' add a '*) test $(grep -c ' add a ' '${folder}/calls') -gt ${refusals};; esac\n`,
    )
    const { status } = spawnSync('sh', ['-c', script], { env: { PATH: `${folder}:${process.env.PATH}` } })
    return { status, calls: await readFile(join(folder, 'calls'), 'utf8') }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A shard that could not be added ends the script with a failure, so that it is tried again: the next one would take its place as the first. */
async function checkFailure(script: string): Promise<void> {
  const refused = await shardsOf(script, 1000)
  expect(refused.status).not.toBe(0)
  expect(refused.calls).not.toContain(' add b ')
  const added = await shardsOf(script, 0)
  expect(added.status).toBe(0)
  expect(added.calls.match(/ add [ab] --url http:/g)).toEqual([' add a --url http:', ' add b --url http:'])
}

const service = z.object({
  image: z.string().optional(),
  build: z.object({ dockerfile: z.literal('docs/deploy/Dockerfile'), target: z.string() }).optional(),
  environment: z.record(z.string(), z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  command: z.union([z.string(), z.array(z.string())]).optional(),
  depends_on: z.union([z.array(z.string()), z.record(z.string(), z.unknown())]).optional(),
})
const compose = z.object({
  configs: z.record(z.string(), z.object({ content: z.string() })),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.unknown()),
})

it('the compose file is two control planes, a pool and a sharded store that fit each other', async () => {
  const { services, volumes, configs } = compose.parse(
    parse(filled(await read('compose-cluster.yaml')), { merge: true }),
  )
  const targets = (await read('Dockerfile')).match(/(?<=AS )(?:runtime|router|node-agent)$/gm) ?? []
  const controls = Object.keys(services).filter(name => name.startsWith('control-'))
  const nodes = Object.keys(services).filter(name => name.startsWith('node-'))
  expect([controls.length, nodes.length]).toEqual([2, 2])
  for (const [
    name,
    { build, environment = {}, volumes: mounted = [], depends_on: after = [], image },
  ] of Object.entries(services)) {
    expect(image, name).toBeDefined()
    if (build) expect(targets).toContain(build.target)
    if (build) checkTunnel(environment)
    if (build) checkVariables(environment, build.target === 'node-agent' ? nodeRunEnv : runtimeEnv)
    for (const volume of mounted) expect(Object.keys(volumes), volume).toContain(volume.split(':')[0])
    for (const other of Array.isArray(after) ? after : Object.keys(after))
      expect(Object.keys(services)).toContain(other)
    // Whatever is dialled is a service of the file.
    for (const value of Object.values(environment)) {
      const host = /^http:\/\/([\w-]+):/.exec(value)?.[1]
      if (host !== undefined) expect(Object.keys(services)).toContain(host)
    }
  }
  for (const control of controls)
    expect(services[control]!.environment?.PLATFORM_PEER_URL).toBe(`http://${control}:8080`)
  const script = String(services.shards!.command).replaceAll('$$', '$')
  checkCommands(script)
  await checkFailure(script)
  // Nothing starts a service of compose again that has to complete.
  expect((await shardsOf(script, 3)).status).toBe(0)
  for (const [, host] of script.matchAll(/http:\/\/([\w-]+):8080/g)) expect(Object.keys(services)).toContain(host)
  expect(configs.balancer!.content).toContain(`reverse_proxy ${controls.map(name => `${name}:8080`).join(' ')} {`)
})

const container = z.object({
  image: z.string(),
  env: z.array(z.object({ name: z.string(), value: z.string().optional() })).default([]),
  args: z.array(z.string()).default([]),
  volumeMounts: z.array(z.object({ name: z.string() })).default([]),
})
const named = z.object({ name: z.string() })
const pods = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }).optional(),
  spec: z.object({ containers: z.tuple([container]), volumes: z.array(named).default([]) }),
})
const document = z.object({
  kind: z.enum(['Service', 'StatefulSet', 'Job', 'NetworkPolicy', 'PodDisruptionBudget']),
  metadata: named,
  spec: z.object({
    serviceName: z.string().optional(),
    replicas: z.int().optional(),
    selector: z.unknown().optional(),
    template: pods.optional(),
    volumeClaimTemplates: z.array(z.object({ metadata: named })).default([]),
  }),
})

it('the Kubernetes manifest is two control planes, a pool and a sharded store that fit each other', async () => {
  const documents = parseAllDocuments(await read('kubernetes-cluster.yaml'))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const all = documents.map(one => document.parse(one.toJS()))
  const services = all.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)
  const sets = new Map(
    all.flatMap(({ kind, metadata, spec }) => (kind === 'StatefulSet' ? [[metadata.name, spec] as const] : [])),
  )
  expect([...sets].map(([name, { replicas }]) => [name, replicas])).toEqual([
    ['waybill-store', 3],
    ['waybill', 2],
    ['waybill-node', 2],
  ])
  for (const { kind, spec } of all) {
    if (spec.template === undefined) continue
    if (kind === 'StatefulSet') {
      expect(services).toContain(spec.serviceName)
      expect(spec.selector).toEqual({ matchLabels: spec.template.metadata?.labels })
    }
    const [only] = spec.template.spec.containers
    const known = [...spec.template.spec.volumes, ...spec.volumeClaimTemplates.map(one => one.metadata)].map(
      one => one.name,
    )
    expect(only.volumeMounts.map(({ name }) => name).toSorted()).toEqual(known.toSorted())
    const [, what, tag] = /waybill-([\w-]+):(.*)$/.exec(only.image) ?? []
    if (what !== undefined) expect(tag).toBe(version)
    const vars = Object.fromEntries(
      only.env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])),
    )
    if (what !== undefined) checkTunnel(vars)
    if (what !== undefined) checkVariables(vars, what === 'node-agent' ? nodeRunEnv : runtimeEnv)
    // Whatever is dialled is a service, or the pod itself.
    for (const text of [...Object.values(vars), ...only.args]) {
      for (const [, host] of text.matchAll(/http:\/\/([\w$().-]+):\d+/g))
        expect([...services, '$(POD_IP)']).toContain(host)
    }
  }
  const script = all.find(({ kind }) => kind === 'Job')!.spec.template!.spec.containers[0].args[0]!
  checkCommands(script)
  await checkFailure(script)
})
