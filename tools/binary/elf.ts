/**
 * What a 64-bit little-endian ELF executable says to the loader: which libraries it needs, which of their symbols, and where the
 * loader writes the addresses. Reads and writes one image in memory; what to change is the caller's decision.
 */

/** Of the ELF specification; the values are on file, so they are numbers. */
const TAG = { needed: 1, strtab: 5, symtab: 6, jmprel: 23, pltrelsz: 2, rela: 7, relasz: 8 } as const;
const GNU_TAG = { versym: 0x6ffffff0, verneed: 0x6ffffffe, verneednum: 0x6fffffff, flags1: 0x6ffffffb } as const;
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const EXECUTABLE = 1;
const DYNAMIC_ENTRY_BYTES = 16;
const RELOCATION_BYTES = 24;
const SYMBOL_BYTES = 24;
const BOUND_AT_START = 1;

interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
  /** Where its header is in the file. */
  readonly headerAt: number;
}

/** The loader writes the address of `symbol` to `slot`. */
export interface Relocation {
  readonly symbol: string;
  readonly type: number;
  /** An address in memory. */
  readonly slot: number;
  /** Where the entry is in the file. */
  readonly entryAt: number;
  /** Where the symbol's version is in the file. */
  readonly versionAt: number;
}

interface NeededVersions {
  readonly library: string;
  readonly indexes: readonly number[];
  /** Such as GLIBC_2.28. */
  readonly names: readonly string[];
  /** Where the record is in the file, the one before it, and how far the one after it is away (0: there is none). */
  readonly at: number;
  readonly previousAt: number | undefined;
  readonly next: number;
}

/** An x86-64 Linux executable with fixed addresses, or undefined for everything else. */
export function parseElf(image: Buffer): Elf | undefined {
  const isElf64 = image.length > 64 && image.readUInt32BE(0) === 0x7f454c46 && image[4] === 2 && image[5] === 1;
  if (!isElf64 || image.readUInt16LE(16) !== 2 || image.readUInt16LE(18) !== 62) return undefined;
  return new Elf(image);
}

/** One image; addresses are those in memory, offsets those in the file. */
export class Elf {
  readonly image: Buffer;
  readonly #segments: readonly Segment[];
  readonly #dynamicAt: number;

  /** @throws Error when the image has no dynamic segment */
  constructor(image: Buffer) {
    this.image = image;
    this.#segments = readSegments(image);
    const dynamic = this.#segments.find(({ type }) => type === PT_DYNAMIC);
    if (dynamic === undefined) throw new Error('not a dynamically linked executable');
    this.#dynamicAt = dynamic.offset;
  }

  /** The libraries that the loader looks for, by name. */
  neededLibraries(): string[] {
    return [...this.#dynamic()].filter(({ tag }) => tag === TAG.needed).map(({ value }) => this.#text(value));
  }

  /** The newest version of each series of symbols that the libraries must have, such as GLIBC_2.28. */
  newestSymbolVersions(): string[] {
    const newest = new Map<string, string>();
    for (const name of [...this.#neededVersions()].flatMap(({ names }) => names)) {
      const series = name.replace(/_[^_]*$/, '');
      if (name.localeCompare(newest.get(series) ?? '', 'en', { numeric: true }) > 0) newest.set(series, name);
    }
    return [...newest.values()].sort();
  }

  /** Whether every symbol is bound before the program starts. */
  isBoundAtStart(): boolean {
    return ((this.#valueOf(GNU_TAG.flags1) ?? 0) & BOUND_AT_START) !== 0;
  }

  /** Every relocation that takes a symbol from the library. */
  *relocationsFrom(library: string): Generator<Relocation> {
    const indexes = new Set([...this.#neededVersions()].find((versions) => versions.library === library)?.indexes);
    const symbols = this.#offsetOf(TAG.symtab);
    const versions = this.#offsetOf(GNU_TAG.versym);
    for (const entryAt of this.#relocations()) {
      const type = this.image.readUInt32LE(entryAt + 8);
      const symbol = this.image.readUInt32LE(entryAt + 12);
      const versionAt = versions + 2 * symbol;
      if (!indexes.has(this.image.readUInt16LE(versionAt) & 0x7fff)) continue;
      const name = this.#text(this.image.readUInt32LE(symbols + SYMBOL_BYTES * symbol));
      yield { symbol: name, type, slot: this.#word(entryAt), entryAt, versionAt };
    }
  }

  /** The loader no longer looks for the library. Its symbols must have been bound already. */
  removeLibrary(library: string): void {
    const { image } = this;
    for (const { library: name, at, previousAt, next } of this.#neededVersions()) {
      if (name !== library) continue;
      if (previousAt === undefined) this.#setValueOf(GNU_TAG.verneed, (value) => value + next);
      else image.writeUInt32LE(next === 0 ? 0 : at - previousAt + next, previousAt + 12);
      this.#setValueOf(GNU_TAG.verneednum, (value) => value - 1);
      break;
    }
    const entries = [...this.#dynamic()];
    const index = entries.findIndex(({ tag, value }) => tag === TAG.needed && this.#text(value) === library);
    const from = this.#dynamicAt + DYNAMIC_ENTRY_BYTES * (index + 1);
    const end = this.#dynamicAt + DYNAMIC_ENTRY_BYTES * entries.length;
    // The entry after the last is the null that ends the list; it moves up with the others.
    image.copyWithin(from - DYNAMIC_ENTRY_BYTES, from, end + DYNAMIC_ENTRY_BYTES);
  }

  /** The bytes that may be executed, and their address. */
  code(): { bytes: Buffer; address: number } {
    const { offset, address, fileBytes } = this.#codeSegment();
    return { bytes: this.image.subarray(offset, offset + fileBytes), address };
  }

  /**
   * Puts code into what is unused of the last page of the code.
   * @returns its address; undefined when there is no room
   */
  appendCode(code: Buffer): number | undefined {
    const { offset, address, fileBytes, headerAt } = this.#codeSegment();
    const at = Math.ceil((offset + fileBytes) / 16) * 16;
    const room = this.image.subarray(at, Math.ceil((offset + fileBytes) / 4096) * 4096);
    if (room.length < code.length || room.some((byte) => byte !== 0)) return undefined;
    code.copy(this.image, at);
    const bytes = BigInt(at + code.length - offset);
    this.image.writeBigUInt64LE(bytes, headerAt + 32);
    this.image.writeBigUInt64LE(bytes, headerAt + 40);
    return address + at - offset;
  }

  /** Where an address is in the file. */
  offsetOfAddress(address: number): number {
    const segment = this.#segments.find(
      (each) => each.type === PT_LOAD && address >= each.address && address < each.address + each.fileBytes,
    );
    if (segment === undefined) throw new Error(`address ${address.toString(16)} is not in the file`);
    return segment.offset + address - segment.address;
  }

  *#dynamic(): Generator<{ tag: number; value: number; valueAt: number }> {
    for (let at = this.#dynamicAt; ; at += DYNAMIC_ENTRY_BYTES) {
      const tag = this.#word(at);
      if (tag === 0) return;
      yield { tag, value: this.#word(at + 8), valueAt: at + 8 };
    }
  }

  *#relocations(): Generator<number> {
    for (const [table, size] of [
      [TAG.rela, TAG.relasz],
      [TAG.jmprel, TAG.pltrelsz],
    ] as const) {
      const bytes = this.#valueOf(size) ?? 0;
      if (bytes === 0) continue;
      const from = this.#offsetOf(table);
      for (let at = from; at < from + bytes; at += RELOCATION_BYTES) yield at;
    }
  }

  *#neededVersions(): Generator<NeededVersions> {
    let at = this.#offsetOf(GNU_TAG.verneed);
    let previousAt: number | undefined;
    for (;;) {
      const indexes: number[] = [];
      const names: string[] = [];
      let versionAt = at + this.image.readUInt32LE(at + 8);
      for (let left = this.image.readUInt16LE(at + 2); left > 0; left--) {
        indexes.push(this.image.readUInt16LE(versionAt + 6));
        names.push(this.#text(this.image.readUInt32LE(versionAt + 8)));
        versionAt += this.image.readUInt32LE(versionAt + 12);
      }
      const next = this.image.readUInt32LE(at + 12);
      yield { library: this.#text(this.image.readUInt32LE(at + 4)), indexes, names, at, previousAt, next };
      if (next === 0) return;
      previousAt = at;
      at += next;
    }
  }

  #codeSegment(): Segment {
    const [segment, ...others] = readSegments(this.image).filter(
      ({ type, flags }) => type === PT_LOAD && (flags & EXECUTABLE) !== 0,
    );
    if (segment === undefined || others.length > 0) throw new Error('code in other than one segment');
    return segment;
  }

  #valueOf(tag: number): number | undefined {
    return [...this.#dynamic()].find((entry) => entry.tag === tag)?.value;
  }

  #setValueOf(tag: number, change: (value: number) => number): void {
    const entry = [...this.#dynamic()].find((each) => each.tag === tag);
    if (entry !== undefined) this.image.writeBigUInt64LE(BigInt(change(entry.value)), entry.valueAt);
  }

  #offsetOf(tag: number): number {
    const address = this.#valueOf(tag);
    if (address === undefined) throw new Error(`no dynamic entry ${tag.toString(16)}`);
    return this.offsetOfAddress(address);
  }

  #text(index: number): string {
    const at = this.#offsetOf(TAG.strtab) + index;
    return this.image.toString('latin1', at, this.image.indexOf(0, at));
  }

  #word(at: number): number {
    return Number(this.image.readBigUInt64LE(at));
  }
}

function readSegments(image: Buffer): Segment[] {
  const from = Number(image.readBigUInt64LE(32));
  const bytes = image.readUInt16LE(54);
  return Array.from({ length: image.readUInt16LE(56) }, (_, index) => {
    const headerAt = from + bytes * index;
    return {
      type: image.readUInt32LE(headerAt),
      flags: image.readUInt32LE(headerAt + 4),
      offset: Number(image.readBigUInt64LE(headerAt + 8)),
      address: Number(image.readBigUInt64LE(headerAt + 16)),
      fileBytes: Number(image.readBigUInt64LE(headerAt + 32)),
      headerAt,
    };
  });
}
