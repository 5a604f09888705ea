import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BROWSER } from '../../../runtime/execution/browse/launch.ts'
import { requireBackend } from '../../../tests/backends/require.ts'
import { buildImage } from '../../guest/build-image.ts'
import { INPUTS_FOLDER, sha256Of } from '../../guest/image-inputs.ts'
import { type GuestImage, openImage } from '../../guest/image-manifest.ts'

/** Whether the files are here that a guest image is built from. */
export const hasGuestInputs = (): boolean =>
  requireBackend('guest inputs', existsSync(join(INPUTS_FOLDER, 'inputs.lock')), 'bash scripts/setup-host.sh')

/** Whether the packages are here that an image with interpreters is built from. */
export const hasInterpreters = (): boolean =>
  requireBackend('interpreters', lockNames('interpreters.lock', 'npm'), 'bash scripts/setup-host.sh')

/** Whether the packages are here that an image with a browser is built from. */
export const hasBrowser = (): boolean =>
  requireBackend('browser', lockNames('browser.lock', BROWSER), 'bash scripts/setup-host.sh')

function lockNames(lock: string, name: string): boolean {
  const path = join(INPUTS_FOLDER, lock)
  return existsSync(path) && readFileSync(path, 'utf8').includes(` ${name} `)
}

/** Where the guest image stands, built once for each state of its sources. */
export async function testImageFolder({ interpreters = false } = {}): Promise<string> {
  const sources = [
    ...[
      'agent.c',
      'build-image.ts',
      'image-inputs.ts',
      'cpio.ts',
      'package-members.ts',
      'clients/waybill.js',
      'clients/waybill.py',
    ],
  ].map(name => new URL(`../../guest/${name}`, import.meta.url))
  const locks = ['inputs.lock', ...(interpreters ? ['interpreters.lock'] : [])].map(name => join(INPUTS_FOLDER, name))
  const key = sha256Of(Buffer.concat([...locks, ...sources].map(path => readFileSync(path))))
  const folder = join(tmpdir(), `waybill-guest-image-${key.slice(0, 16)}${interpreters ? '-interpreters' : ''}`)
  if ((await openImage(folder)) === undefined) await buildImage(INPUTS_FOLDER, folder, { interpreters })
  return folder
}

export async function testImage(): Promise<GuestImage> {
  return (await openImage(await testImageFolder()))!
}
