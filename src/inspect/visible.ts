// What a model or a tool wrote, made safe to print: control characters but tab and line feed in caret notation (`^[` is
// escape), marks that turn the direction of text as a replacement character. Pure.

export const visible = (text: string): string =>
  text.replace(/\r\n/g, '\n').replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, char => {
    if (char === '\n' || char === '\t') return char
    const code = char.charCodeAt(0)
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`
    return code === 0x7f ? '^?' : '\ufffd'
  })
