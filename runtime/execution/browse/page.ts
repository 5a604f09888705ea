import { z } from 'zod'
import { StepFailure } from '../failure.ts'
import { Declined, type Devtools, type Values } from './devtools.ts'

const WORLD = 'waybill'
const VIEW = { width: 1280, height: 800 }
/** For pictures and the like, once the text is there: some pages never end to load. */
const LINGER_MS = 5000
/** Of a picture of a whole page. */
const TALLEST = 8000

const targets = z.object({ targetInfos: z.array(z.object({ targetId: z.string(), type: z.string() })) })
const frameOf = z.object({ frameId: z.string() })
const answered = z.object({
  type: z.string(),
  frameId: z.string().optional(),
  response: z.object({ status: z.int().min(0).max(999) }),
})
const evaluated = z.object({
  result: z.object({ value: z.unknown() }),
  exceptionDetails: z.object({ exception: z.object({ description: z.string().optional() }).optional() }).optional(),
})

type Send = (method: string, params?: Values) => Promise<Values>

/** What is known of the loading of a page. */
function loadingOf(browser: Devtools, frameId: string, send: Send) {
  let status: number | undefined
  /** It was asked to go elsewhere, or is on its way. */
  let busy = false
  /** When all of its text was there, though pictures may still be coming. */
  let parsedMs: number | undefined
  let wake = () => {}
  const now = (loading: boolean) => {
    busy = loading
    if (loading) parsedMs = undefined
    else wake()
  }
  browser.onEvent((method, params) => {
    const own = frameOf.safeParse(params).data?.frameId === frameId
    if (own && (method === 'Page.frameStartedLoading' || method === 'Page.frameRequestedNavigation')) now(true)
    if (own && method === 'Page.frameStoppedLoading') now(false)
    if (method === 'Page.domContentEventFired') {
      parsedMs = performance.now()
      wake()
    }
    if (own && method === 'Network.responseReceived') {
      const { data } = answered.safeParse(params)
      if (data?.type === 'Document') status = data.response.status
    }
    // There is no person before it to answer; a page that asks whether it may be left is left.
    if (method === 'Page.javascriptDialogOpening') {
      send('Page.handleJavaScriptDialog', { accept: params.type === 'beforeunload' }).catch(() => undefined)
    }
    if (method === 'Inspector.targetCrashed') {
      browser.end(new StepFailure('sandbox_failed', 'the page crashed the browser, perhaps for want of memory'))
    }
  })

  /** Waits for the page to be there. False: it was still loading after so long, and is taken as it is. */
  async function settled(mostMs: number): Promise<boolean> {
    // The page answers this after what it did at once, so a click that leads elsewhere has said so by now.
    await send('Runtime.evaluate', { expression: '0' }).catch((error: unknown) => {
      if (!(error instanceof Declined)) throw error
    })
    const until = performance.now() + mostMs
    while (busy) {
      const left = Math.min(until, (parsedMs ?? Infinity) + LINGER_MS) - performance.now()
      if (left <= 0) return false
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      const timer = setTimeout(resolve, left)
      await promise
      clearTimeout(timer)
    }
    return true
  }

  return {
    settled,
    status: () => status,
    begin(): void {
      status = undefined
    },
  }
}

export type Page = Awaited<ReturnType<typeof openPage>>

/** One page of a browser, and what is known of its loading. */
export async function openPage(browser: Devtools) {
  // It starts with one; another would be another process.
  const { targetInfos } = targets.parse(await browser.send('Target.getTargets'))
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const attached = await browser.send('Target.attachToTarget', { targetId, flatten: true })
  const { sessionId } = z.object({ sessionId: z.string() }).parse(attached)
  const send = (method: string, params?: Values) => browser.send(method, params, sessionId)
  const tree = z.object({ frameTree: z.object({ frame: z.object({ id: z.string() }) }) })
  const frameId = tree.parse(await send('Page.getFrameTree')).frameTree.frame.id

  const loading = loadingOf(browser, frameId, send)
  await Promise.all([
    ...['Page.enable', 'Inspector.enable'].map(method => send(method)),
    send('Network.enable', { maxPostDataSize: 0 }),
    browser.send('Browser.setDownloadBehavior', { behavior: 'deny' }),
  ])

  /** Calls a function inside of the page; rejects with Declined where it throws, or the page goes elsewhere under it. */
  async function call<T>(schema: z.ZodType<T>, source: string, ...given: unknown[]): Promise<T> {
    const world = await send('Page.createIsolatedWorld', { frameId, worldName: WORLD })
    const { executionContextId } = z.object({ executionContextId: z.int() }).parse(world)
    const said = await send('Runtime.callFunctionOn', {
      executionContextId,
      functionDeclaration: source,
      returnByValue: true,
      arguments: given.map(value => ({ value })),
    })
    const { result, exceptionDetails } = evaluated.parse(said)
    const thrown = exceptionDetails && (exceptionDetails.exception?.description?.split('\n')[0] ?? 'it threw')
    if (thrown !== undefined) throw new Declined(thrown.slice(0, 300))
    return schema.parse(result.value)
  }

  async function mouse(type: string, x: number, y: number): Promise<void> {
    const button = type === 'mouseMoved' ? {} : { button: 'left', clickCount: 1 }
    await send('Input.dispatchMouseEvent', { type, x, y, ...button })
  }

  return {
    call,
    settled: loading.settled,
    /** Of the document that was received last; none where nothing was received. */
    status: loading.status,

    /** Why it did not get there, or undefined. */
    async goto(url: string): Promise<string | undefined> {
      loading.begin()
      const said = await send('Page.navigate', { url })
      return z.object({ errorText: z.string().max(200).optional() }).parse(said).errorText
    },

    async click(x: number, y: number): Promise<void> {
      for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) await mouse(type, x, y)
    },

    async insert(text: string): Promise<void> {
      await send('Input.insertText', { text })
    },

    async enter(): Promise<void> {
      const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13 }
      await send('Input.dispatchKeyEvent', { type: 'keyDown', text: '\r', ...key })
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...key })
    },

    /** A PNG, in base64. */
    async picture(whole: boolean): Promise<string> {
      const sizes = z.object({ cssContentSize: z.object({ height: z.number() }) })
      const height = whole ? sizes.parse(await send('Page.getLayoutMetrics')).cssContentSize.height : VIEW.height
      const clip = { x: 0, y: 0, width: VIEW.width, scale: 1, height: Math.min(Math.max(height, 1), TALLEST) }
      const made = await send('Page.captureScreenshot', {
        format: 'png',
        ...(whole && { clip, captureBeyondViewport: true }),
      })
      return z.object({ data: z.string() }).parse(made).data
    },
  }
}
