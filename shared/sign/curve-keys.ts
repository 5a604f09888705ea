import { sealTo } from '../tunnel/sealed-payload.ts'
import { type Signer, signer, verifySignature } from './ed25519.ts'

/** What a service does with keys of Curve25519 on the way of a run. */
export interface CurveKeys {
  signer(seed: Uint8Array<ArrayBuffer>): Promise<Signer>
  /** False for a wrong signature and for one of a wrong length. */
  verifySignature(
    raw: Uint8Array<ArrayBuffer>,
    signature: Uint8Array<ArrayBuffer>,
    message: Uint8Array<ArrayBuffer>,
  ): Promise<boolean>
  /** As `sealTo` of shared/tunnel/sealed-payload.ts. */
  sealTo(to: Uint8Array<ArrayBuffer>, plain: Uint8Array<ArrayBuffer>, place: string): Promise<Uint8Array<ArrayBuffer>>
}

/** By WebCrypto, which every host has. */
export const portableCurveKeys: CurveKeys = { signer, verifySignature, sealTo }
