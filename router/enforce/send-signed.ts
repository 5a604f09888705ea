import type { CloudSigner, ToSign } from '../cloud/cloud-signer.ts'
import type { Provider } from '../config/routing-config.ts'
import type { HeaderList, UpstreamResponse } from '../upstream/transport.ts'

/** How a call proves who makes it. */
export interface Proof {
  headers(call: ToSign): Promise<HeaderList>
  /** Whether a call that was so refused with these headers may be made once more, with another proof. */
  renew(sent: HeaderList, response: UpstreamResponse): boolean
}

export function proofBy(signer: CloudSigner, provider: Provider): Proof {
  return {
    headers: call => signer.signed(provider, call),
    renew: (sent, response) => signer.refused(provider, sent, response),
  }
}

/** Sends a call with its proof; where that is refused and another can be had, the call is made once more with it. */
export async function sendSigned(
  proof: Proof,
  call: ToSign,
  send: (headers: HeaderList) => Promise<UpstreamResponse>,
): Promise<UpstreamResponse> {
  const headers = await proof.headers(call)
  const response = await send(headers)
  if ((response.status !== 401 && response.status !== 403) || !proof.renew(headers, response)) return response
  const fresh = await proof.headers(call).catch(() => undefined)
  if (fresh === undefined) return response
  // A refusal is short: read to its end, its connection can be used again.
  for await (const _ of response.body);
  return send(fresh)
}
