/** The rule does not let a call out. Repeating it changes nothing until a setting does. */
export class OutboundDenied extends Error {
  override name = 'OutboundDenied'
}

/** The refusal in what a host's client threw, however deep it stands among the causes. */
export function denialIn(error: unknown): OutboundDenied | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof OutboundDenied) return at
  }
  return undefined
}
