//! A disassembler: programs as text, in the notation of `bpftool prog dump xlated`.
//!
//! Source: Linux `kernel/bpf/disasm.c`. One difference: a map has the descriptor with which the
//! program is loaded (`map[fd:9]`), where `bpftool` prints the map's id.

use std::fmt::Write;

use crate::instruction::*;

/// Operators of arithmetic by the upper half of the code; some have forms of their own.
const OPERATORS: [&str; 13] =
    ["+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=", "s>>="];

/// Comparisons of jumps by the upper half of the code; empty for calls and other jumps.
const COMPARISONS: [&str; 14] =
    ["", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="];

/// Types of memory accesses by bits 3 and 4 of the code.
const TYPES: [&str; 4] = ["u32", "u16", "u8", "u64"];

// Instruction classes, the lower three bits of the code.
const CLASS_LOAD: u8 = 1;
const CLASS_STORE_IMMEDIATE: u8 = 2;
const CLASS_STORE: u8 = 3;
const CLASS_ARITHMETIC_WORD: u8 = 4;
const CLASS_JUMP: u8 = 5;
const CLASS_JUMP_WORD: u8 = 6;
const CLASS_ARITHMETIC: u8 = 7;

/// Returns the text of a program, one instruction a line.
pub fn disassemble(program: &[Instruction]) -> String {
    let mut text = String::new();
    let mut place = 0;
    while let Some(one) = program.get(place) {
        let is_wide = one.code == LOAD_WIDE;
        let second = program.get(place + 1).map_or(0, |second| second.immediate);
        let line = if is_wide { wide_load(one, second) } else { instruction(one) };
        writeln!(text, "{place:4}: ({:02x}) {line}", one.code).expect("a string takes all text");
        place += 1 + usize::from(is_wide);
    }
    text
}

fn wide_load(one: &Instruction, second: i32) -> String {
    let (to, from, first) = (one.registers & 15, one.registers >> 4, one.immediate);
    match from {
        FROM_MAP => format!("r{to} = map[fd:{first}]"),
        FROM_MAP_VALUE => format!("r{to} = map[fd:{first}][0]+{second}"),
        _ => format!("r{to} = 0x{:x}", u64::from(second as u32) << 32 | u64::from(first as u32)),
    }
}

fn instruction(one: &Instruction) -> String {
    let Instruction { code, registers, offset, immediate } = *one;
    let (to, from) = (registers & 15, registers >> 4);
    let class = code & 7;
    let operation = usize::from(code >> 4);
    let kind = TYPES[usize::from(code >> 3 & 3)];
    // The kernel writes w for the lower 32 bits of a register.
    let r = if matches!(class, CLASS_ARITHMETIC_WORD | CLASS_JUMP_WORD) { 'w' } else { 'r' };
    let has_register = code & WITH_REGISTER != 0;
    match (code, class) {
        (TO_BIG_ENDIAN, _) => format!("r{to} = be{immediate} r{to}"),
        (ATOMIC_ADD, _) => format!("lock *({kind} *)(r{to} {offset:+}) += r{from}"),
        (JUMP, _) => format!("goto pc{offset:+}"),
        (MAY_JUMP, _) => format!("may_goto pc{offset:+}"),
        (EXIT, _) => "exit".to_owned(),
        (CALL, _) if from == OF_KERNEL => format!("call kernel-function#{immediate}"),
        (CALL, _) => format!("call {}#{immediate}", Helper::name(immediate).unwrap_or("unknown")),
        (_, CLASS_LOAD) => format!("r{to} = *({kind} *)(r{from} {offset:+})"),
        (_, CLASS_STORE_IMMEDIATE) => format!("*({kind} *)(r{to} {offset:+}) = {immediate}"),
        (_, CLASS_STORE) => format!("*({kind} *)(r{to} {offset:+}) = r{from}"),
        (_, CLASS_ARITHMETIC | CLASS_ARITHMETIC_WORD) => match OPERATORS.get(operation) {
            Some(operator) if has_register => format!("{r}{to} {operator} {r}{from}"),
            Some(operator) => format!("{r}{to} {operator} {immediate}"),
            None => unknown(code),
        },
        (_, CLASS_JUMP | CLASS_JUMP_WORD) => match COMPARISONS.get(operation) {
            None | Some(&"") => unknown(code),
            Some(operator) if has_register => {
                format!("if {r}{to} {operator} {r}{from} goto pc{offset:+}")
            }
            Some(operator) => {
                format!("if {r}{to} {operator} 0x{:x} goto pc{offset:+}", immediate as u32)
            }
        },
        _ => unknown(code),
    }
}

fn unknown(code: u8) -> String {
    format!("unknown instruction 0x{code:02x}")
}
