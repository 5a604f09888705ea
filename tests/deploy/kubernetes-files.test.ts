import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { runtimeEnv } from '../../runtime/env.ts'
import { readEnv } from '../../shared/env/read-env.ts'

const FILES = ['kubernetes.yaml', 'kubernetes-cluster.yaml']

const probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.int() }),
  periodSeconds: z.int().default(10),
  timeoutSeconds: z.int().default(1),
  failureThreshold: z.int().default(3),
})
const container = z.object({
  image: z.string(),
  env: z.unknown().optional(),
  args: z.unknown().optional(),
  resources: z.object({ requests: z.object({ cpu: z.string(), memory: z.string() }) }).optional(),
  ports: z.array(z.object({ containerPort: z.int() })).default([]),
  startupProbe: probe.optional(),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
  lifecycle: z
    .object({ preStop: z.object({ exec: z.object({ command: z.tuple([z.literal('sleep'), z.string()]) }) }) })
    .optional(),
  // What the Pod Security Standard `restricted` asks of a container, and a root that nothing writes to.
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
})
const pod = z.object({
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  terminationGracePeriodSeconds: z.int().default(30),
  securityContext: z.object({
    runAsNonRoot: z.literal(true),
    runAsUser: z.int().min(1),
    fsGroup: z.int().optional(),
    fsGroupChangePolicy: z.literal('OnRootMismatch').optional(),
    seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
  }),
  containers: z.tuple([container]),
})
const workload = z.object({
  kind: z.enum(['StatefulSet', 'Job']),
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    serviceName: z.string().optional(),
    podManagementPolicy: z.string().optional(),
    replicas: z.int().optional(),
    selector: z.unknown().optional(),
    ttlSecondsAfterFinished: z.int().optional(),
    template: z.object({ metadata: z.object({ labels: z.record(z.string(), z.string()) }).optional(), spec: pod }),
    volumeClaimTemplates: z.array(z.object({ spec: z.unknown() })).default([]),
  }),
})
const service = z.object({
  kind: z.literal('Service'),
  metadata: z.object({ name: z.string() }),
  spec: z.object({ selector: z.record(z.string(), z.string()) }),
})

const labels = z.record(z.string(), z.string())
const budget = z.object({
  kind: z.literal('PodDisruptionBudget'),
  spec: z.object({ maxUnavailable: z.literal(1), selector: z.object({ matchLabels: labels }) }),
})
const policy = z.object({
  kind: z.literal('NetworkPolicy'),
  spec: z.object({
    podSelector: z.object({ matchLabels: labels }),
    ingress: z.tuple([
      z.object({
        from: z.tuple([
          z.object({
            podSelector: z.object({
              matchExpressions: z.tuple([
                z.object({ key: z.literal('app'), operator: z.literal('In'), values: z.array(z.string()) }),
              ]),
            }),
          }),
        ]),
      }),
    ]),
  }),
})

const kind = z.object({ kind: z.string() })

async function contentOf(name: string) {
  const text = await readFile(new URL(`../../docs/deploy/${name}`, import.meta.url), 'utf8')
  const all = parseAllDocuments(text).map(one => one.toJS() as unknown)
  const of = (...kinds: string[]) => all.filter(one => kinds.includes(kind.parse(one).kind))
  return {
    workloads: of('StatefulSet', 'Job').map(one => workload.parse(one)),
    services: of('Service').map(one => service.parse(one)),
    budgets: of('PodDisruptionBudget').map(one => budget.parse(one).spec),
    policies: of('NetworkPolicy').map(one => policy.parse(one).spec),
  }
}

describe.each(FILES)('%s', name => {
  it('has pods that the Pod Security Standard `restricted` admits, without a token of the cluster', async () => {
    const { workloads } = await contentOf(name)
    expect(workloads.length).toBeGreaterThan(0)
    // A volume is given to the group once; else each start would walk over all of its files.
    for (const { spec, metadata } of workloads) {
      const { fsGroup, fsGroupChangePolicy } = spec.template.spec.securityContext
      if (spec.volumeClaimTemplates.length > 0)
        expect([fsGroup !== undefined, fsGroupChangePolicy], metadata.name).toEqual([true, 'OnRootMismatch'])
    }
  })

  it('has services that lead to pods', async () => {
    const { workloads, services } = await contentOf(name)
    for (const { spec, metadata } of services) {
      const found = workloads.filter(({ metadata: set, spec: { replicas = 0, template } }) => {
        const labels = Array.from({ length: replicas }, (_, number) => ({
          ...template.metadata?.labels,
          'statefulset.kubernetes.io/pod-name': `${set.name}-${number}`,
        }))
        return labels.some(one =>
          Object.entries(spec.selector).every(([key, value]) => one[key as keyof typeof one] === value),
        )
      })
      expect(found, metadata.name).toHaveLength(1)
    }
  })

  it('sends a control plane no call while it stops, and gives it the time to start and to drain', async () => {
    const { workloads } = await contentOf(name)
    const { template } = workloads.find(one => one.metadata.name === 'waybill')!.spec
    const [{ startupProbe, readinessProbe, livenessProbe, lifecycle }] = template.spec.containers
    const sleepSeconds = Number(lifecycle?.preStop.exec.command[1])
    expect(sleepSeconds).toBeGreaterThanOrEqual(5)
    const drainSeconds = readEnv(runtimeEnv, {}).PLATFORM_DRAIN_TIMEOUT / 1000
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(sleepSeconds + drainSeconds + 5)
    // It listens when the store is up to date.
    expect(startupProbe!.periodSeconds * startupProbe!.failureThreshold).toBeGreaterThanOrEqual(1800)
    expect([startupProbe, livenessProbe].map(one => one?.httpGet.path)).toEqual(['/healthz', '/healthz'])
    expect(readinessProbe?.httpGet.path).toBe('/readyz')
    expect(livenessProbe!.timeoutSeconds).toBeGreaterThanOrEqual(10)
  })
})

it('sets ask for memory, lose one pod at a time to who makes room, and the store is reached by what dials it alone', async () => {
  const { workloads, budgets, policies } = await contentOf('kubernetes-cluster.yaml')
  const sets = workloads.filter(one => one.kind === 'StatefulSet')
  for (const { spec } of sets) expect(spec.template.spec.containers[0].resources).toBeDefined()
  const labelsOf = sets.map(({ spec }) => spec.template.metadata?.labels)
  expect(budgets.map(({ selector }) => selector.matchLabels)).toEqual(labelsOf)
  expect(policies.map(({ podSelector }) => podSelector.matchLabels)).toEqual([{ app: 'waybill-store' }])
  const dialling = workloads.filter(({ spec }) => /waybill-store-\d/.test(JSON.stringify(spec.template)))
  const [{ from }] = policies[0]!.ingress
  expect(from[0].podSelector.matchExpressions[0].values.toSorted()).toEqual(
    dialling.map(({ spec }) => spec.template.metadata?.labels.app).toSorted(),
  )
})

it('a Job that is done goes away, since it takes no new image', async () => {
  const { workloads } = await contentOf('kubernetes-cluster.yaml')
  const jobs = workloads.filter(one => one.kind === 'Job')
  expect(jobs).toHaveLength(1)
  for (const { spec } of jobs) expect(spec.ttlSecondsAfterFinished).toBeLessThanOrEqual(600)
})

it('the cluster can be applied over the single control plane', async () => {
  const [one, many] = await Promise.all(
    FILES.map(
      async name => (await contentOf(name)).workloads.find(({ metadata }) => metadata.name === 'waybill')!.spec,
    ),
  )
  // A StatefulSet takes no change of these.
  const fixed = ({ serviceName, podManagementPolicy, selector, volumeClaimTemplates }: typeof one & {}) => ({
    serviceName,
    podManagementPolicy,
    selector,
    volumeClaimTemplates,
  })
  expect(fixed(many!)).toEqual(fixed(one!))
})
