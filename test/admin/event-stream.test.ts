/** Server-sent events: their format, snapshot and updates, and the limit of streams. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createEventStreams, formatEvent } from '../../src/admin/event-stream.ts';

class FakeResponse extends EventEmitter {
  readonly written: string[] = [];
  readonly socket = {};
  destroyed = false;
  writableLength = 0;
  write(text: string): boolean {
    this.written.push(text);
    return true;
  }
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
  leave(): void {
    this.emit('close');
  }
}

function start(rowAt: (at: number) => object = (at) => ({ row: [at] })) {
  let publish: (() => void) | undefined;
  let now = 0;
  const respond = createEventStreams({
    subscribe(next) {
      publish = next;
      return () => (publish = undefined);
    },
    createSnapshot: () => ({ all: true }),
    createUpdate: () => rowAt(now),
  });
  const open = (): FakeResponse => {
    const response = new FakeResponse();
    respond().stream?.(response as unknown as ServerResponse);
    return response;
  };
  return { respond, open, second: (at: number) => ((now = at), publish?.()), isFollowing: () => publish !== undefined };
}

describe('an event', () => {
  it('is one line of JSON', () => {
    expect(formatEvent('tick', { words: 'a\nb\r\n\ndata: c' })).toBe(
      'event: tick\ndata: {"words":"a\\nb\\r\\n\\ndata: c"}\n\n',
    );
  });
});

describe('a stream', () => {
  it('gets a snapshot first, then updates', () => {
    const { respond, open, second } = start();
    expect(respond()).toMatchObject({ status: 200, headers: { 'Content-Type': 'text/event-stream' } });
    const page = open();
    second(1);
    expect(page.written).toEqual([
      'retry: 1000\n\nevent: hello\ndata: {"all":true}\n\n',
      'event: tick\ndata: {"row":[1]}\n\n',
    ]);
  });

  it('subscribes only while open, and renders once for all streams', () => {
    let drawn = 0;
    const { open, second, isFollowing } = start(() => ({ drawn: ++drawn }));
    expect(isFollowing()).toBe(false);
    const pages = [open(), open(), open()];
    second(1);
    expect(drawn).toBe(1);
    for (const page of pages) page.leave();
    expect(isFollowing()).toBe(false);
  });

  it('is refused when eight are open, and accepted after one has closed', () => {
    const { respond, open } = start();
    const pages = Array.from({ length: 8 }, open);
    expect(respond()).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
    pages[3]?.leave();
    expect(respond().status).toBe(200);
  });

  it('is one of eight, also when more are requested at the same time', () => {
    const { respond } = start();
    const promised = Array.from({ length: 20 }, () => respond());
    const pages = promised.map(({ stream }) => {
      const response = new FakeResponse();
      stream?.(response as unknown as ServerResponse);
      return response;
    });
    expect(pages.filter(({ destroyed }) => !destroyed)).toHaveLength(8);
    expect(pages.filter(({ written }) => written.length > 0)).toHaveLength(8);
  });

  it('ends when its client does not read; the others continue', () => {
    const { open, second } = start();
    const [slow, quick] = [open(), open()];
    slow.writableLength = 1_000_000;
    second(1);
    second(2);
    expect([slow.destroyed, slow.written.length]).toEqual([true, 1]);
    expect([quick.destroyed, quick.written.length]).toEqual([false, 3]);
  });

  it('ends when a state cannot be read, without other effects', () => {
    const { open, second, isFollowing } = start(() => {
      throw new Error('no state');
    });
    const page = open();
    expect(() => second(1)).not.toThrow();
    expect([page.destroyed, isFollowing()]).toEqual([true, false]);
  });

  it('does not start for a client that has disconnected', () => {
    const { respond, isFollowing } = start();
    const gone = new FakeResponse();
    gone.destroyed = true;
    respond().stream?.(gone as unknown as ServerResponse);
    expect([gone.written, isFollowing()]).toEqual([[], false]);
  });
});
