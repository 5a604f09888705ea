import { createRequire } from 'node:module'

/** As much of Restate's SDK as is used here; it is no dependency of the project. */
interface Sdk {
  service: (of: {
    name: string
    handlers: Record<string, (context: Context, input: { steps: number }) => Promise<number>>
  }) => unknown
  serve: (of: { services: unknown[]; port: number }) => Promise<unknown>
}
interface Context {
  run: (name: string, action: () => number) => Promise<number>
}

// Each invocation prints twice that it is there, and that the start is unsigned.
console.info = () => undefined
console.warn = () => undefined
const sdk = createRequire(`${process.env.PEER}/package.json`)('@restatedev/restate-sdk') as Sdk
const noop = sdk.service({
  name: 'noop',
  handlers: {
    async run(context, { steps }) {
      for (let step = 0; step < steps; step++) await context.run('step', () => step)
      return steps
    },
  },
})
await sdk.serve({ services: [noop], port: Number(process.env.PORT) })
