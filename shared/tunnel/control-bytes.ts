import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ControlFrameSchema } from './gateway.gen.ts'

type Body = NonNullable<MessageInitShape<typeof ControlFrameSchema>['body']>

/** A frame for a node as its bytes. Loading this takes a quarter of a second, so it is imported where a node is really told something. */
export function controlBytes(body: Body): Uint8Array<ArrayBuffer> {
  return toBinary(ControlFrameSchema, create(ControlFrameSchema, { body }))
}
