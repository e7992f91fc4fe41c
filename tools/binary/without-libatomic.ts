/**
 * Makes a Node.js executable start where libatomic.so.1 is not installed. Official Linux builds since Node 25 need it for one function,
 * `__atomic_compare_exchange`, which V8 calls for 8 bytes only; the processor has one instruction for that. That function
 * is put into the executable, and the loader is no longer told of the library. Whatever looks different from this is left alone:
 * the executable then needs the library as before.
 */
import { parseElf, type Elf } from './elf.ts';

/** As the loader knows it. */
const LIBRARY = 'libatomic.so.1';

const FUNCTION = '__atomic_compare_exchange';
const JUMP_SLOT = 7;
const GLOBAL_VERSION = 1;

/**
 * bool (size, object, expected, desired, ...): stores *desired in *object if that equals *expected, else *object in *expected.
 * In the memory order that is strongest, whichever is asked for.
 */
const COMPARE_EXCHANGE_8 = Buffer.from(
  [
    '83ff08', // cmp $8, %edi
    '7402', // je over the next
    '0f0b', // ud2: another size ends the process and never goes on with a wrong result
    '488b02', // mov (%rdx), %rax
    '488b09', // mov (%rcx), %rcx
    'f0480fb10e', // lock cmpxchg %rcx, (%rsi)
    '488902', // mov %rax, (%rdx): what was there; unchanged when they were equal
    '0f94c0', // sete %al
    'c3', // ret
  ].join(''),
  'hex',
);

/** mov $8, %edi: the first argument of a call. */
const EIGHT_BYTES = Buffer.from('bf08000000', 'hex');
/** Its place is at most this far before the call. */
const ARGUMENTS_BYTES = 48;
const CALL = 0xe8;
const JUMP = 0xe9;
/** jmp *slot(%rip), of which a stub of the procedure linkage table consists. */
const STUB = Buffer.from('ff25', 'hex');

/**
 * Changes the image in place.
 * @returns undefined when it needs the library no longer or never did, else why it was left alone
 */
export function dropLibatomic(image: Buffer): string | undefined {
  const elf = parseElf(image);
  if (elf === undefined) return 'not an x86-64 Linux executable with fixed addresses';
  if (!elf.neededLibraries().includes(LIBRARY)) return undefined;
  const [relocation, ...others] = elf.relocationsFrom(LIBRARY);
  if (relocation?.symbol !== FUNCTION || relocation.type !== JUMP_SLOT || others.length > 0)
    return `more of ${LIBRARY} is used than ${FUNCTION}`;
  if (!elf.isBoundAtStart()) return 'symbols are bound on demand';
  const odd = findUnsupportedCall(elf, relocation.slot);
  if (odd !== undefined) return odd;
  const address = elf.appendCode(COMPARE_EXCHANGE_8);
  if (address === undefined) return 'no room after the code';
  image.writeBigUInt64LE(BigInt(address), elf.offsetOfAddress(relocation.slot));
  // Type 0 tells the loader to leave the slot as it is.
  image.fill(0, relocation.entryAt + 8, relocation.entryAt + 24);
  image.writeUInt16LE(GLOBAL_VERSION, relocation.versionAt);
  elf.removeLibrary(LIBRARY);
  return undefined;
}

/** Says in words what is not a call with a size of 8 bytes. */
function findUnsupportedCall(elf: Elf, slot: number): string | undefined {
  const { bytes, address } = elf.code();
  const stubs = [...findAll(bytes, STUB)].filter((at) => address + at + 6 + bytes.readInt32LE(at + 2) === slot);
  if (stubs.length !== 1) return `${String(stubs.length)} stubs of ${FUNCTION}`;
  let calls = 0;
  for (const opcode of [CALL, JUMP])
    for (const at of findAll(bytes, Buffer.of(opcode))) {
      if (at + 5 > bytes.length || at + 5 + bytes.readInt32LE(at + 1) !== stubs[0]) continue;
      const before = bytes.subarray(Math.max(0, at - ARGUMENTS_BYTES), at);
      if (opcode === JUMP || !before.includes(EIGHT_BYTES)) return `${FUNCTION} is used for other than 8 bytes`;
      calls++;
    }
  return calls === 0 ? `no call of ${FUNCTION} was found` : undefined;
}

function* findAll(bytes: Buffer, pattern: Buffer): Generator<number> {
  for (let at = bytes.indexOf(pattern); at !== -1; at = bytes.indexOf(pattern, at + 1)) yield at;
}
