// A program for WASI preview 1 that tries to harm the node it runs on: the source of hostile.wasm, compiled with
// rustc --target wasm32-wasip1 -C opt-level=z -C lto -C panic=abort -C strip=symbols -o hostile.wasm hostile.rs
use std::env;

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    fn fd_write(fd: u32, pieces: *const [u32; 2], count: u32, written: *mut u32) -> u32;
    fn fd_pwrite(fd: u32, pieces: *const [u32; 2], count: u32, offset: u64, written: *mut u32) -> u32;
    fn fd_filestat_set_size(fd: u32, size: u64) -> u32;
    fn fd_allocate(fd: u32, offset: u64, length: u64) -> u32;
    fn fd_close(fd: u32) -> u32;
    fn path_create_directory(fd: u32, path: *const u8, length: u32) -> u32;
    fn path_open(fd: u32, flags: u32, path: *const u8, length: u32, create: u32, base: u64, inheriting: u64, how: u32, opened: *mut u32) -> u32;
}

mod waybill {
    #[link(wasm_import_module = "waybill")]
    extern "C" {
        pub fn call(path: *const u8, path_len: usize, body: *const u8, body_len: usize) -> i32;
    }
}

const WORK: u32 = 3;
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;

unsafe fn open(folder: u32, name: &str, create: u32) -> u32 {
    let mut fd = 0;
    path_open(folder, 0, name.as_ptr(), name.len() as u32, create, !0, !0, 0, &mut fd);
    fd
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |at: usize| args.get(at).map_or(0, |text| text.parse::<usize>().unwrap());
    let count = number(2);
    let mut written = 0;
    let letter = [b'x'];
    let piece = [letter.as_ptr() as u32, 1];
    unsafe {
        match args[1].as_str() {
            "one-write" => {
                let bytes = vec![b'x'; count];
                fd_write(1, &[bytes.as_ptr() as u32, count as u32], 1, &mut written);
            }
            "empty-writes" => {
                for _ in 0..count {
                    fd_write(1, &[0, 0], 1, &mut written);
                }
            }
            "small-writes" => {
                for _ in 0..count {
                    fd_write(1, &piece, 1, &mut written);
                }
            }
            "deep" => {
                let mut folder = WORK;
                for _ in 0..count {
                    path_create_directory(folder, "d".as_ptr(), 1);
                    let next = open(folder, "d", DIRECTORY);
                    if folder != WORK {
                        fd_close(folder);
                    }
                    folder = next;
                }
                for index in 0..number(3) {
                    fd_close(open(folder, &format!("f{index}"), CREATE));
                }
            }
            "files" => {
                for index in 0..count {
                    fd_close(open(WORK, &format!("f{index}"), CREATE));
                }
            }
            "long-call" => {
                let path = format!("/{}", "x".repeat(count));
                println!("{}", waybill::call(path.as_ptr(), path.len(), path.as_ptr(), 0));
            }
            "below-zero" => {
                let file = open(WORK, "file", CREATE);
                println!("{}", fd_pwrite(file, &piece, 1, 0, &mut written));
                println!("{}", fd_filestat_set_size(file, !0));
                println!("{}", fd_pwrite(file, &piece, 1, !0 - 7, &mut written));
                println!("{}", fd_allocate(file, !0, 5));
            }
            _ => {}
        }
    }
}
