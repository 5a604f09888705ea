import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { requireBackend } from './require.ts'

/** For the top of a test file: whether certificates can be made here. */
export const opensslAvailable = (): boolean =>
  requireBackend('openssl', spawnSync('openssl', ['version']).status === 0, 'apt-get install openssl')

/** A key and a certificate that it signed itself, valid for two days, as files of the folder. */
export function selfSigned(folder: string, name: string, address?: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const names = ['-addext', `subjectAltName=DNS:${name}${address === undefined ? '' : `,IP:${address}`}`]
  execFileSync(
    'openssl',
    ['req', '-x509', ...curve, '-days', '2', '-subj', `/CN=${name}`, ...names, '-keyout', key, '-out', cert],
    { stdio: 'ignore' },
  )
  return { cert, key }
}
