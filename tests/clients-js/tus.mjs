// Drives tus-js-client: reads commands as lines, writes events as lines of JSON.
//
//   node tus.mjs '{"endpoint": …, "key": …, "file": …, "metadata": …}'
//
// start: begins or resumes. previous: resumes what an earlier process noted in `notes`. pause: stops in place.
// terminate: aborts the upload. Each prints its result; see `say`.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { FileUrlStorage, Upload } from 'tus-js-client'

const given = JSON.parse(process.argv[2])
const bytes = readFileSync(given.file)
const say = (event, more) => console.log(JSON.stringify({ event, ...more }))

const upload = new Upload(bytes, {
  endpoint: given.endpoint,
  headers: { Authorization: `Bearer ${given.key}` },
  metadata: given.metadata,
  chunkSize: given.chunkSize,
  retryDelays: given.retryDelays ?? null,
  uploadDataDuringCreation: given.withCreation ?? false,
  overridePatchMethod: given.overridden ?? false,
  removeFingerprintOnSuccess: true,
  ...(given.notes && { urlStorage: new FileUrlStorage(given.notes), fingerprint: async () => 'the file' }),
  // The client has no checksum support; its hook adds them.
  onBeforeRequest: (request) => {
    const offset = request.getHeader('Upload-Offset')
    if (given.checksum && offset !== undefined) {
      const piece = bytes.subarray(Number(offset), Number(offset) + given.chunkSize)
      const sum = createHash(given.checksum).update(piece).digest('base64')
      request.setHeader('Upload-Checksum', `${given.checksum} ${sum}`)
    }
  },
  onUploadUrlAvailable: () => say('created', { url: upload.url }),
  onChunkComplete: (_, accepted) => say('chunk', { accepted }),
  onShouldRetry: () => {
    say('retry')
    return true
  },
  onError: (error) => say('failed', { message: error.message, status: error.originalResponse?.getStatus() }),
  onSuccess: ({ lastResponse }) => say('stored', { url: lastResponse.getHeader('X-Object-Url') }),
})

const commands = {
  start: () => upload.start(),
  previous: async () => {
    const found = await upload.findPreviousUploads()
    say('found', { count: found.length })
    upload.resumeFromPreviousUpload(found[0])
    upload.start()
  },
  pause: () => upload.abort().then(() => say('paused')),
  terminate: () => upload.abort(true).then(() => say('terminated')),
}

for await (const line of createInterface({ input: process.stdin })) {
  await commands[line]()
}
process.exit(0)
