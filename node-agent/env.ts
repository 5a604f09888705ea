import { z } from 'zod'

/** What the node process reads from its environment. */
export const nodeEnv = z.object({
  /** State, bundles and snapshots; on a file system through which other users may walk. */
  NODE_STATE_DIR: z.string().default('/var/lib/waybill/node'),
  /** Written by `node-agent image`. */
  NODE_IMAGE_DIR: z.string().default('/var/lib/waybill/guest-image'),
  /** The accelerator of QEMU; software emulation is for development and is shown on every run. */
  NODE_QEMU_ACCEL: z.enum(['kvm', 'tcg'], { error: 'expected kvm or tcg' }).default('kvm'),
  FIRECRACKER_BIN: z.string().optional(),
  FIRECRACKER_JAILER: z.string().optional(),
  FIRECRACKER_KERNEL: z.string().optional(),
})
export type NodeEnv = z.output<typeof nodeEnv>
