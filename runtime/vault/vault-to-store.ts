import { ApiError } from '../../shared/http/api-error.ts'
import type { Vault } from './vault.ts'

/** The vault of this process, or undefined where no master key was given. */
export type Sealing = () => Promise<Vault | undefined>

/** The vault for something that is about to be stored; a refusal that says what is missing where there is none. */
export async function vaultToStore(sealing: Sealing, what: string): Promise<Vault> {
  const vault = await sealing()
  if (vault) return vault
  const message = `${what} cannot be stored: this service was started without a master key (PLATFORM_MASTER_KEY)`
  throw new ApiError('validation_failed', message)
}
