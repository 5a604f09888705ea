/** Whether a provider got what a program sent: the same bytes, or the same but for the name of the model. */
export function bytesSaid(sent: readonly Buffer[], got: readonly { body: Buffer }[]): string {
  const named = /("model"\s*:\s*)"[^"]*"/
  const unnamed = (body: Buffer) => body.toString('latin1').replace(named, '$1')
  const bodies = got.map(({ body }) => body).filter(({ length }) => length > 0)
  const same = bodies.filter(body => sent.some(one => one.equals(body))).length
  const spliced = bodies.filter(body => sent.some(one => unnamed(one) === unnamed(body))).length
  return `${bodies.length}, ${same} as sent, ${spliced} as sent but for the model`
}
