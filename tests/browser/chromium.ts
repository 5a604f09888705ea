import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requireBackend } from '../backends/require.ts'

/** W3C WebDriver §5: the name under which an element comes over the wire. */
const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'

/** A sandbox of another test got its network device or lost it, and the browser begins its connections anew. */
export const isOfMachine = (complaint: string): boolean => complaint.includes('net::ERR_NETWORK_CHANGED')

/** Nothing of the browser's own may ask the network: a test counts every request. */
export const QUIET = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const [BROWSER, DRIVER] = ['chromium', 'chromedriver'] as const
const hasBoth = [BROWSER, DRIVER].every(name => spawnSync(name, ['--version']).status === 0)

/** Whether tests in a real browser run here; see requireBackend. */
export function hasChromium(): boolean {
  return requireBackend('chromium', hasBoth, 'apt-get install chromium chromium-driver, or bash scripts/setup-host.sh')
}

export interface Looks {
  width?: number
  height?: number
  scheme?: 'light' | 'dark'
}

export type Browser = Awaited<ReturnType<typeof openChromium>>

/** A Chromium of its own behind chromedriver, driven over WebDriver's HTTP. */
export async function openChromium() {
  const profile = await mkdtemp(join(tmpdir(), 'waybill-chromium-'))
  const driver = spawn(DRIVER, ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const base = `http://127.0.0.1:${await portOf(driver)}`

  async function ask<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(base + path, { method, ...(body && { body: JSON.stringify(body) }) })
    const { value } = (await answer.json()) as { value: T & { error?: string; message?: string } }
    if (answer.ok) return value
    throw new Error(`${method} ${path}: ${value.error}: ${value.message}`)
  }

  const { sessionId } = await ask<{ sessionId: string }>('POST', '/session', {
    capabilities: {
      alwaysMatch: {
        'goog:chromeOptions': { args: ['--window-size=1280,900', ...QUIET, `--user-data-dir=${profile}`] },
        'goog:loggingPrefs': { performance: 'ALL', browser: 'ALL' },
      },
    },
  }).catch((error: unknown) => {
    driver.kill()
    throw error
  })
  const at = `/session/${sessionId}`
  const find = async (css: string) =>
    (await ask<Record<string, string>>('POST', `${at}/element`, { using: 'css selector', value: css }))[ELEMENT]
  const devtools = (cmd: string, params: object) => ask<unknown>('POST', `${at}/goog/cdp/execute`, { cmd, params })
  const logs = (type: string) => ask<{ message: string }[]>('POST', `${at}/se/log`, { type })

  return {
    goto: (url: string) => ask<null>('POST', `${at}/url`, { url }),
    /** Runs the body of a function in the page; a promise is waited for. */
    run: <T>(script: string, ...args: unknown[]) => ask<T>('POST', `${at}/execute/sync`, { script, args }),
    click: async (css: string) => ask<null>('POST', `${at}/element/${await find(css)}/click`, {}),
    type: async (css: string, text: string) => ask<null>('POST', `${at}/element/${await find(css)}/value`, { text }),
    /** Keys to whatever has the focus. */
    press: (key: string) => {
      const actions = ['keyDown', 'keyUp'].map(type => ({ type, value: key }))
      return ask<null>('POST', `${at}/actions`, { actions: [{ type: 'key', id: 'keyboard', actions }] })
    },
    text: (css: string) => ask<string>('POST', `${at}/execute/sync`, { script: TEXT_OF, args: [css] }),
    async look({ width = 1280, height = 900, scheme = 'light' }: Looks): Promise<void> {
      await devtools('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 })
      await devtools('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
    },
    /** Of the page's upper part, or of what the window shows. */
    async screenshot(path: string, height?: number): Promise<void> {
      const width = await ask<number>('POST', `${at}/execute/sync`, { script: 'return innerWidth', args: [] })
      const clip = height !== undefined && {
        captureBeyondViewport: true,
        clip: { x: 0, y: 0, width, height, scale: 1 },
      }
      const params = { format: 'png', ...clip }
      const { data } = (await devtools('Page.captureScreenshot', params)) as { data: string }
      await writeFile(path, Buffer.from(data, 'base64'))
    },
    /** Addresses of every request since the last time this was asked. */
    async requests(): Promise<string[]> {
      const seen = (await logs('performance')).map(({ message }) => JSON.parse(message).message as DevtoolsEvent)
      return seen.flatMap(({ method, params }) =>
        method === 'Network.requestWillBeSent' && params.request ? [params.request.url] : [],
      )
    },
    /** What the browser complained about: a breach of the page's policy, an uncaught error. */
    complaints: async () =>
      (await logs('browser')).map(({ message }) => message).filter(message => !isOfMachine(message)),
    async close(): Promise<void> {
      await ask('DELETE', at)
      const gone = new Promise(resolve => driver.once('exit', resolve))
      driver.kill()
      await gone
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface DevtoolsEvent {
  method: string
  params: { request?: { url: string } }
}

const TEXT_OF = `return document.querySelector(arguments[0])?.innerText ?? ''`

/** It takes a free port and says which. */
function portOf(driver: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    driver.once('error', reject)
    driver.once('exit', code => reject(new Error(`chromedriver ended with ${code}: ${said}`)))
    driver.stdout!.on('data', chunk => {
      said += chunk
      const port = /started successfully on port (\d+)/.exec(said)?.[1]
      if (port !== undefined) resolve(port)
    })
  })
}
