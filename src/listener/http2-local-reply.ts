/**
 * The local reply to a client that speaks HTTP/2 without asking (RFC 9113 §3.3), in the frames of HTTP/2, because its library would hide one
 * in HTTP/1.1: a response to its first request, where that has arrived, and a GOAWAY with the reason. Pure.
 */

/** What the client sends before its first frame (§3.4). */
const PREFACE_BYTES = 24;
const FRAME_HEAD_BYTES = 9;
const [DATA, HEADERS, SETTINGS, GOAWAY] = [0, 1, 4, 7] as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const HTTP_1_1_REQUIRED = 13;

/**
 * @param received what the client has sent, from its preface on
 * @param requestId of at most 126 characters, so that its length takes one byte
 * @param reason for GOAWAY, which clients show
 */
export function buildHttp2LocalReply(
  received: Uint8Array,
  { status, body }: { readonly status: number; readonly body: string },
  requestId: string,
  reason: string,
): Buffer {
  const isRequested = hasFirstRequest(received);
  const goAway = Buffer.alloc(8);
  goAway.writeUInt32BE(isRequested ? 1 : 0, 0);
  goAway.writeUInt32BE(HTTP_1_1_REQUIRED, 4);
  const response = isRequested
    ? [
        buildFrame(HEADERS, END_HEADERS, 1, encodeHead(status, requestId)),
        buildFrame(DATA, END_STREAM, 1, Buffer.from(body)),
      ]
    : [];
  const end = buildFrame(GOAWAY, 0, 0, Buffer.concat([goAway, Buffer.from(reason)]));
  return Buffer.concat([buildFrame(SETTINGS, 0, 0, Buffer.alloc(0)), ...response, end]);
}

/** Whether the head of the first request is among the bytes from the preface on. */
export function hasFirstRequest(received: Uint8Array): boolean {
  const bytes = Buffer.from(received);
  for (let at = PREFACE_BYTES; at + FRAME_HEAD_BYTES <= received.length;) {
    if (bytes[at + 3] === HEADERS && bytes.readUInt32BE(at + 5) === 1) return true;
    at += FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
  }
  return false;
}

function buildFrame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Literals: `:status` and `content-type` with the names 8 and 31 of the static table (RFC 7541 §6.2.2, appendix A), and a name of its own. */
function encodeHead(status: number, requestId: string): Buffer {
  const fields = [
    [Buffer.from([0x08]), encodeText(String(status))],
    [Buffer.from([0x0f, 0x10]), encodeText('application/problem+json')],
    [Buffer.from([0]), encodeText('x-request-id'), encodeText(requestId)],
  ];
  return Buffer.concat(fields.flat());
}

/** @param text of at most 126 characters, in ASCII */
function encodeText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}
