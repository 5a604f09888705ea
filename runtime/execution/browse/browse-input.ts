import { z } from 'zod'

/** What a model may ask of one call. */
export const MAX_ACTIONS = 20
const LONGEST_WAIT_S = 60

const url = z
  .string()
  .max(2048, 'expected an address of at most 2,048 characters')
  .refine(text => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'expected an http or https address')
const selector = z
  .string()
  .min(1, 'expected a CSS selector, such as "#total" or "a.next"')
  .max(500, 'expected a CSS selector of at most 500 characters')

export const browseAction = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.literal('goto'), url }),
    z.strictObject({ action: z.literal('click'), selector }),
    z.strictObject({
      action: z.literal('type'),
      selector,
      text: z.string().max(10_000, 'expected at most 10,000 characters'),
      /** Presses Enter behind it. */
      submit: z.boolean().optional(),
    }),
    z.strictObject({
      action: z.literal('wait'),
      selector,
      seconds: z
        .number()
        .min(0.1, 'expected 0.1 seconds or more')
        .max(LONGEST_WAIT_S, `expected at most ${LONGEST_WAIT_S} seconds`)
        .default(10),
    }),
    z.strictObject({
      action: z.literal('extract'),
      selector,
      attribute: z
        .string()
        .regex(/^[A-Za-z][A-Za-z0-9_:-]{0,63}$/, 'expected the name of an attribute, such as href')
        .optional(),
    }),
    z.strictObject({
      action: z.literal('screenshot'),
      path: z
        .string()
        .max(200, 'expected a path of at most 200 characters')
        .regex(/\.png$/, 'expected a path in the workspace that ends in .png'),
      fullPage: z.boolean().optional(),
    }),
  ],
  { error: 'expected an object whose action is goto, click, type, wait, extract or screenshot' },
)
export type BrowseAction = z.output<typeof browseAction>

export const browseInput = z.strictObject({
  url,
  actions: z.array(browseAction).max(MAX_ACTIONS, `expected at most ${MAX_ACTIONS} actions`).default([]),
})
export type BrowseInput = z.output<typeof browseInput>

const { $schema: _, ...schema } = z.toJSONSchema(browseInput, { io: 'input' })

/** As a model is shown it. */
export const browseParameters: Record<string, unknown> = schema
