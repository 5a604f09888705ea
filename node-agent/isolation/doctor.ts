import { BROWSER } from '../../runtime/execution/browse/launch.ts'
import type { NodeEnv } from '../env.ts'
import { type GuestImage, type NamedImage, NO_IMAGE, namedImages, openImage } from '../guest/image-manifest.ts'
import type { Driver, Probe } from './driver.ts'
import { boundedProbe, driversOf, reapAll } from './drivers.ts'
import { kvmRemark, kvmTrouble } from './kvm.ts'
import { cgroupVersion } from './oci/cgroups.ts'

export interface Diagnosis {
  probes: Probe[]
  host: {
    root: boolean
    cgroups: 1 | 2 | undefined
    image: string | undefined
    /** What the image has beyond its plain tools. */
    programs: readonly string[]
    /** Those that agents ask for by name. They are tried when a run first does. */
    images: readonly NamedImage[]
    kvm: string
    /** By which proxies it goes out, where its variables name one. */
    network?: string
  }
  /** Leftovers that were removed first. */
  reaped: number
}

/** Runs each backend for real, one after another so that none is slowed by its neighbour. */
export async function examine(env: NodeEnv, deadlineMs: number, only?: readonly string[]): Promise<Diagnosis> {
  const image = await openImage(env.NODE_AGENT_IMAGE_DIR)
  const drivers = driversOf(env, image ?? NO_IMAGE)
  const reaped = await reapAll(drivers)
  const probes: Probe[] = []
  for (const driver of drivers) {
    if (only === undefined || only.includes(driver.backend))
      probes.push(await examineOne(driver, image, env, deadlineMs))
  }
  return {
    probes,
    reaped: reaped.length,
    host: {
      root: process.getuid?.() === 0,
      cgroups: await cgroupVersion(),
      image: image?.digest,
      programs: image?.programs ?? [],
      images: await namedImages(env.NODE_AGENT_IMAGES_DIR),
      kvm: (await kvmTrouble()) ?? (await kvmRemark()) ?? '/dev/kvm may be opened; only a booted guest proves it.',
    },
  }
}

/** Backends that need the guest image cannot be tried without it; the others tell what they lack all the same. */
const WITHOUT_IMAGE: ReadonlySet<string> = new Set(['wasm', 'kata', 'firecracker'])

async function examineOne(
  driver: Driver,
  image: GuestImage | undefined,
  env: NodeEnv,
  deadlineMs: number,
): Promise<Probe> {
  const { backend } = driver
  if (image === undefined && !WITHOUT_IMAGE.has(backend)) {
    return {
      backend,
      available: false,
      reasons: [`There is no guest image in ${env.NODE_AGENT_IMAGE_DIR}.`],
      install: ['Build it with "node-agent image", or set NODE_AGENT_IMAGE_DIR.'],
    }
  }
  try {
    const probe = await boundedProbe(driver, deadlineMs)
    if (backend !== 'qemu' || probe.available) return probe
    const kvm = env.NODE_AGENT_QEMU_ACCEL === 'kvm' ? await kvmRemark() : undefined
    const emulate = 'For development without hardware virtualisation, start the node with NODE_AGENT_QEMU_ACCEL=tcg.'
    return {
      ...probe,
      reasons: [...probe.reasons, ...(kvm === undefined ? [] : [kvm])],
      install: env.NODE_AGENT_QEMU_ACCEL === 'kvm' ? [...probe.install, emulate] : probe.install,
    }
  } finally {
    await driver.close()
  }
}

/** What agents may ask of the image, and how to build one that has the rest. */
function additions(programs: readonly string[]): string[] {
  const lacks = [
    ...(programs.includes('npm') ? [] : ['--interpreters (python, node, install_packages)']),
    ...(programs.includes(BROWSER) ? [] : ['--browser (browse)']),
  ]
  return [
    ...(programs.length === 0 ? [] : [`       with ${programs.join(', ')}`]),
    ...(lacks.length === 0 ? [] : [`       → "node-agent image" adds more with ${lacks.join(' and ')}`]),
  ]
}

/** For people: one line a backend, and under it why or what to do. */
export function describe({ probes, host, reaped }: Diagnosis): string {
  const lines = probes.flatMap(
    ({ backend, available, version, accel, kernelRelease, verifiedBy, reasons, install }) => [
      `${available ? 'ok  ' : 'no  '} ${backend}${version === undefined ? '' : ` ${version}`}` +
        (accel === undefined
          ? ''
          : `, accelerator ${accel}${accel === 'tcg' ? ' (software emulation: for development)' : ''}`) +
        (available && kernelRelease !== undefined ? `, kernel ${kernelRelease}` : ''),
      ...(verifiedBy === undefined ? [] : [`       verified: ${verifiedBy}`]),
      ...(backend === 'wasm' && available
        ? ['       for agents whose entrypoint is JavaScript or a WASI module: it starts no commands']
        : []),
      ...reasons.map(reason => `       ${reason}`),
      ...install.map(step => `       → ${step}`),
    ],
  )
  return [
    ...lines,
    '',
    `host: ${host.root ? 'root' : 'not root: containers cannot be limited'}, control groups ${host.cgroups ?? 'none'}`,
    `guest image: ${host.image ?? 'none'}`,
    ...(host.image === undefined ? [] : additions(host.programs)),
    ...host.images.map(
      ({ name, digest, programs, damaged }) =>
        `guest image ${name}: ${damaged ?? digest}${programs.length === 0 ? '' : `, with ${programs.join(', ')}`}`,
    ),
    `kvm: ${host.kvm}`,
    ...(host.network === undefined ? [] : [`proxy: ${host.network}`]),
    ...(reaped === 0 ? [] : [`removed ${reaped} sandboxes that an earlier process left behind`]),
    '',
  ].join('\n')
}
